#!/usr/bin/env bash
# Applies each one-line fault to a scratch copy and shows that the tests notice. Usage: tests/mutations/run.sh [PATCH...]
#
# Faults of the engine are tried in a package that holds only domain, engine and policy, as a shared library: the tests are built once,
# and for each fault only the library. Those elsewhere are tried in the whole program, with the tests that TESTS_OF names for their
# room. MUTATION_TARGET_DIR keeps what was built between two calls, MUTATION_SEEDS bounds the simulator, PROPTEST_CASES the rest;
# MUTATION_WRAPPER is put before every command that builds or tests.
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
declare -A TESTS_OF=([launcher]="launcher" [runtime]="operator_boundary lanes" [worker]="lanes" [cli]="operator_boundary" [tracker]="exams" [forge]="exams")

mkdir -p "$scratch/engine/src/config" "$scratch/engine/trials/src" "$scratch/engine/trials/tests/it"
cd "$scratch/engine"
cp "$root/Cargo.lock" .
# Without development dependencies, so that the library is the same one whether it is built for itself or for the tests.
dependencies='serde = { version = "1", features = ["derive"] }
serde_json = "1"
schemars = { version = "1.2", default-features = false, features = ["derive", "std"] }
thiserror = "2"
ulid = "3"
sha2 = "0.11"'
cat > Cargo.toml <<TOML
[package]
name = "dirigent"
version = "0.1.0"
edition = "2024"
publish = false
[lib]
crate-type = ["dylib"]
[dependencies]
$dependencies
[profile.dev]
opt-level = 1
[workspace]
members = ["trials"]
TOML
cat > trials/Cargo.toml <<TOML
[package]
name = "trials"
version = "0.1.0"
edition = "2024"
publish = false
[dependencies]
$dependencies
dirigent = { path = ".." }
proptest = { version = "1", default-features = false, features = ["std", "bit-set"] }
[[test]]
name = "sim"
path = "tests/simulator/main.rs"
harness = false
TOML
printf 'pub mod domain;\npub mod engine;\npub mod config {\n    pub mod policy;\n}\n' > src/lib.rs
touch trials/src/lib.rs
printf 'mod engine;\n' > trials/tests/it/main.rs
cp -r "$root/tests/it/engine" trials/tests/it/
cp -r "$root/tests/simulator" trials/tests/

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
  mkdir "$scratch/program"
  (cd "$root" && git ls-files -z --cached --others --exclude-standard | tar --null -T - -cf -) | tar -xf - -C "$scratch/program"
  cd "$scratch/program"
}

wrapped() {
  ${MUTATION_WRAPPER:-} "$@"
}

# What is built for the tests, once: they call the library, which is exchanged below them.
build_engine_tests() {
  export CARGO_TARGET_DIR=$targets/engine
  wrapped cargo test -p trials --no-run --message-format json-render-diagnostics > "$scratch/built" || exit 1
  for test in it sim; do
    sed -nE "s|.*\"kind\":\[\"test\"\].*\"name\":\"$test\".*\"executable\":\"([^\"]+)\".*|\1|p" "$scratch/built" > "$scratch/path"
    cp "$(cat "$scratch/path")" "$scratch/$test"
  done
}

# Builds the library with the fault; runs the engine's tests and the simulator; says who noticed.
try_engine() {
  export CARGO_TARGET_DIR=$targets/engine
  export LD_LIBRARY_PATH=$targets/engine/debug/deps:$(rustc --print sysroot)/lib
  export scratch seeds
  # shellcheck disable=SC2016 # expanded in there
  wrapped bash -c '
    cargo build -p trials --lib > "$scratch/log" 2>&1 || { echo BROKEN; exit; }
    "$scratch/it" > "$scratch/log.it" 2>&1 || echo it
    "$scratch/sim" --seeds "$seeds" > "$scratch/log.sim" 2>&1 || echo sim
  ' > "$scratch/failed"
  local noticed=""
  if grep -q BROKEN "$scratch/failed"; then
    echo BROKEN
    return
  fi
  if grep -q it "$scratch/failed"; then
    noticed=$(failed_tests "$scratch/log.it")
  fi
  if grep -q sim "$scratch/failed"; then
    noticed="$noticed; simulator: $(sed -nE 's/^(seed [0-9]+) breaks a promise: (.{0,70}).*/\1, \2/p' "$scratch/log.sim" | head -1)"
  fi
  echo "${noticed#; }"
}

try_program() {
  export CARGO_TARGET_DIR=$targets/program
  # shellcheck disable=SC2086 # several words are several filters
  if wrapped cargo test --lib --test it -- $1 > "$scratch/log" 2>&1; then
    return
  fi
  if grep -qE '^error(\[|:)' "$scratch/log" && ! grep -qE '^test .* FAILED$' "$scratch/log"; then
    echo "BROKEN"
  else
    failed_tests "$scratch/log"
  fi
}

failed_tests() {
  local count
  count=$(grep -cE '^test .* FAILED$' "$1" || true)
  echo "$count test(s): $(sed -nE 's/^test (.*) \.\.\. FAILED$/`\1`/p' "$1" | sed -n '1,2p' | paste -sd' ')"
}

fresh_engine
build_engine_tests
if [ -n "$(try_engine)" ]; then
  tail -30 "$scratch"/log*
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
