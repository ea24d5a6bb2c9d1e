#!/usr/bin/env bash
# Applies each one-line fault to a scratch copy of the engine and shows that the engine tests or the simulator notice.
# The scratch package holds only domain, engine and policy, so that a round is seconds. Usage: tests/mutations/run.sh [PATCH...]
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export CARGO_TARGET_DIR=${MUTATION_TARGET_DIR:-$scratch/target}

mkdir -p "$scratch/src/config" "$scratch/tests/it"
cp "$root/Cargo.lock" "$scratch/"
cat > "$scratch/Cargo.toml" <<'TOML'
[package]
name = "dirigent"
version = "0.1.0"
edition = "2024"
publish = false
[dependencies]
serde = { version = "1", features = ["derive"] }
serde_json = "1"
schemars = { version = "1.2", default-features = false, features = ["derive", "std"] }
thiserror = "2"
ulid = "3"
sha2 = "0.11"
[dev-dependencies]
proptest = { version = "1", default-features = false, features = ["std", "bit-set"] }
[profile.dev]
debug = "line-tables-only"
[profile.test]
opt-level = 1
[workspace]
TOML
printf 'pub mod domain;\npub mod engine;\npub mod config {\n    pub mod policy;\n}\n' > "$scratch/src/lib.rs"
printf 'mod engine;\nmod simulator;\n' > "$scratch/tests/it/main.rs"
cp -r "$root/tests/it/engine" "$root/tests/it/simulator" "$scratch/tests/it/"

fresh() {
  rm -rf "$scratch/src/domain" "$scratch/src/engine"
  cp -r "$root/src/domain" "$root/src/engine" "$scratch/src/"
  cp "$root/src/config/policy.rs" "$scratch/src/config/"
  find "$scratch/src" -name '*.rs' -exec touch {} +
}

attempt() {
  (cd "$scratch" && ${MUTATION_WRAPPER:-} cargo test --test it 2>&1) > "$scratch/log" || return 1
}

fresh
if ! attempt; then
  grep -E '^(error|test .*FAILED)' -A5 "$scratch/log" | head -40
  echo "the tests fail without any fault: nothing can be shown"
  exit 1
fi

survivors=0
patches=("$@")
[ ${#patches[@]} -gt 0 ] || patches=("$here"/*.patch)
for patch in "${patches[@]}"; do
  fresh
  name=$(basename "$patch" .patch)
  if ! (cd "$scratch" && patch -s -p1 < "$patch"); then
    echo "STALE     $name: the patch does not apply"
    survivors=$((survivors + 1))
  elif attempt; then
    echo "SURVIVED  $name"
    survivors=$((survivors + 1))
  elif grep -qE '^error(\[|:)' "$scratch/log" && ! grep -qE '^test .* FAILED$' "$scratch/log"; then
    echo "BROKEN    $name: it does not compile"
    survivors=$((survivors + 1))
  else
    count=$(grep -cE '^test .* FAILED$' "$scratch/log" || true)
    first=$(sed -nE 's/^test (.*) \.\.\. FAILED$/\1/p' "$scratch/log" | sed -n '1,3p' | paste -sd' ')
    echo "caught    $name by $count: $first"
  fi
done
exit $((survivors > 0))
