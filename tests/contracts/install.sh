#!/bin/sh
# Installs the published API descriptions of GitHub and Linear, in the versions that the *-wanted.json files name.
# Usage: tests/contracts/install.sh PREFIX
# The checks for drift find them through DIRIGENT_CONTRACTS_PREFIX=PREFIX. What is already there is left as it is. Needs npm and cargo.
set -eu

prefix=${1:?usage: install.sh PREFIX}
here=$(cd "$(dirname "$0")" && pwd)

command -v npm >/dev/null 2>&1 || { echo "install.sh: npm was not found; install Node 20 or newer" >&2; exit 1; }
packages=$(node -e 'const w = require(process.argv[1]); for (const s of [w.rest, w.graphql]) console.log(s.package + "@" + s.version)' "$here/github-wanted.json")
mkdir -p "$prefix"

# Linear's schema is published inside a crate. `cargo info` downloads that one crate and none of its dependencies.
crate=$(node -e 'const w = require(process.argv[1]); console.log(w.crate + "-" + w.version)' "$here/linear-wanted.json")
if [ ! -d "$prefix/$crate" ]; then
    (cd "$prefix" && cargo info --quiet "${crate%-*}@${crate##*-}" >/dev/null)
    cp -r "${CARGO_HOME:-$HOME/.cargo}"/registry/src/*/"$crate" "$prefix/$crate"
fi

if [ "$(cat "$prefix/.installed" 2>/dev/null)" = "$packages" ]; then
    exit 0
fi
for try in 1 2 3; do
    rm -rf "$prefix/node_modules" "$prefix/package-lock.json"
    # shellcheck disable=SC2086
    if npm install --prefix "$prefix" --no-audit --no-fund --loglevel=error $packages; then
        echo "$packages" > "$prefix/.installed"
        exit 0
    fi
    echo "install.sh: try $try failed" >&2
    sleep $((try * 5))
done
echo "install.sh: the packages could not be installed; is the npm registry reachable? (npm config get registry)" >&2
exit 1
