#!/usr/bin/env bash
# Applies each one-line fault to a scratch copy and shows that the tests notice. Usage: tests/mutations/run.sh [PATCH...]
#
# Faults of the engine are tried in a package that holds only domain, engine and policy, so that a round is seconds; those
# elsewhere in the whole program, with the tests that TESTS_OF names for their room.
# MUTATION_TARGET_DIR keeps what was built between two calls, MUTATION_SEEDS bounds the simulator, PROPTEST_CASES the rest.
# With MUTATION_QUICK=1 the simulator is asked only about what no test notices.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
targets=${MUTATION_TARGET_DIR:-$scratch/target}
seeds=${MUTATION_SEEDS:-1500}
patches=()
for patch in "$@"; do patches+=("$(realpath "$patch")"); done
[ ${#patches[@]} -gt 0 ] || patches=("$here"/*.patch)
# As it is now: whatever is edited meanwhile, all faults are tried on the same source.
mkdir "$scratch/source"
(cd "$root" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf -) | tar -xf - -C "$scratch/source"
root=$scratch/source
declare -A TESTS_OF=([launcher]="launcher" [runtime]="operator_boundary lanes" [worker]="lanes" [cli]="operator_boundary" [tracker]="exams" [forge]="exams")

mkdir -p "$scratch/engine/src/config" "$scratch/engine/tests/it"
cd "$scratch/engine"
cp "$root/Cargo.lock" .
cat > Cargo.toml <<'TOML'
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
[[test]]
name = "sim"
path = "tests/simulator/main.rs"
harness = false
[profile.test]
opt-level = 1
[workspace]
TOML
printf 'pub mod domain;\npub mod engine;\npub mod config {\n    pub mod policy;\n}\n' > src/lib.rs
printf 'mod engine;\n' > tests/it/main.rs
cp -r "$root/tests/it/engine" tests/it/
cp -r "$root/tests/simulator" tests/

fresh_engine() {
  cd "$scratch/engine"
  rm -rf src/domain src/engine
  cp -r "$root/src/domain" "$root/src/engine" src/
  cp "$root/src/config/policy.rs" src/config/
  find src -name '*.rs' -exec touch {} +
}

# The whole program, for what is not the engine's.
fresh_program() {
  rm -rf "$scratch/program"
  cp -r "$root" "$scratch/program"
  cd "$scratch/program"
}

cargo_test() {
  ${MUTATION_WRAPPER:-} cargo test "$@"
}

# Runs the engine's tests and the simulator; says who noticed.
try_engine() {
  local noticed=""
  export CARGO_TARGET_DIR=$targets/engine
  if ! cargo_test --test it > "$scratch/log" 2>&1; then
    if grep -qE '^error(\[|:)' "$scratch/log" && ! grep -qE '^test .* FAILED$' "$scratch/log"; then
      echo "BROKEN"
      return
    fi
    noticed=$(failed_tests)
  fi
  if [ -n "${MUTATION_QUICK:-}" ] && [ -n "$noticed" ]; then
    echo "$noticed"
    return
  fi
  if ! cargo_test --test sim -- --seeds "$seeds" > "$scratch/log" 2>&1; then
    if [ -z "$noticed" ] && grep -qE '^error(\[|:)' "$scratch/log" && ! grep -q '^seed\|panicked' "$scratch/log"; then
      echo "BROKEN"
      return
    fi
    noticed="$noticed; simulator: $(sed -nE 's/^(seed [0-9]+) breaks a promise: (.{0,70}).*/\1, \2/p' "$scratch/log" | head -1)"
  fi
  echo "${noticed#; }"
}

try_program() {
  export CARGO_TARGET_DIR=$targets/program
  # shellcheck disable=SC2086 # several words are several filters
  if cargo_test --lib --test it -- $1 > "$scratch/log" 2>&1; then
    return
  fi
  if grep -qE '^error(\[|:)' "$scratch/log" && ! grep -qE '^test .* FAILED$' "$scratch/log"; then
    echo "BROKEN"
  else
    failed_tests
  fi
}

failed_tests() {
  local count
  count=$(grep -cE '^test .* FAILED$' "$scratch/log" || true)
  echo "$count test(s): $(sed -nE 's/^test (.*) \.\.\. FAILED$/`\1`/p' "$scratch/log" | sed -n '1,2p' | paste -sd' ')"
}

fresh_engine
if [ -n "$(try_engine)" ]; then
  tail -30 "$scratch/log"
  echo "the tests fail without any fault: nothing can be shown"
  exit 1
fi

missed=0
for patch in "${patches[@]}"; do
  name=$(basename "$patch" .patch)
  file=$(sed -n 's|^+++ b/||p' "$patch" | head -1)
  room=$(echo "$file" | cut -d/ -f2)
  case $room in
    engine | domain) fresh_engine ;;
    *) fresh_program ;;
  esac
  if ! patch -s -p1 < "$patch"; then
    echo "| $name | STALE: the patch does not apply |"
    missed=$((missed + 1))
    continue
  fi
  case $room in
    engine | domain) noticed=$(try_engine) ;;
    *) noticed=$(try_program "${TESTS_OF[$room]}") ;;
  esac
  case $noticed in
    "") echo "| $name | SURVIVED |"; missed=$((missed + 1)) ;;
    BROKEN) echo "| $name | BROKEN: it does not compile |"; missed=$((missed + 1)) ;;
    *) echo "| $name | $noticed |" ;;
  esac
done
exit $((missed > 0))
