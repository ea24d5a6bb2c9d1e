#!/bin/sh
# Installs the pinned agent clients that the end-to-end tests drive. Usage: tests/agents/install.sh PREFIX [client...]
# Nothing is installed globally; the tests find the clients through DIRIGENT_AGENTS_PREFIX=PREFIX. What is already there in the
# pinned version is left as it is. Needs npm (Node 20 or newer); the Node that the clients themselves need is installed too.
set -eu

prefix=${1:?usage: install.sh PREFIX [codex] [claude] [pi] [opencode]}
shift
[ $# -gt 0 ] || set -- codex claude pi opencode

command -v npm >/dev/null 2>&1 || { echo "install.sh: npm was not found; install Node 20 or newer" >&2; exit 1; }
mkdir -p "$prefix/bin"
prefix=$(cd "$prefix" && pwd)

# install NAME PACKAGE@VERSION: a failed try leaves no mark, so that the next one begins anew.
install() {
    if [ "$(cat "$prefix/$1/.installed" 2>/dev/null)" = "$2" ]; then
        return 0
    fi
    for try in 1 2 3; do
        echo "installing $2 into $prefix/$1"
        rm -rf "${prefix:?}/$1"
        if npm install --prefix "$prefix/$1" --no-audit --no-fund --loglevel=error "$2"; then
            echo "$2" > "$prefix/$1/.installed"
            return 0
        fi
        echo "install.sh: try $try to install $2 failed" >&2
        sleep $((try * 5))
    done
    echo "install.sh: $2 could not be installed; is the npm registry reachable? (npm config get registry)" >&2
    return 1
}

# The clients ask for a newer Node than many systems have; on an old one npm quietly picks old client versions.
install node node@24.21.0
node_bin=$prefix/node/node_modules/node/bin
PATH=$node_bin:$PATH
export PATH

for client in "$@"; do
    case $client in
        codex) package=@openai/codex@0.166.0 ;;
        claude) package=@anthropic-ai/claude-code@2.1.325 ;;
        pi) package=@earendil-works/pi-coding-agent@0.87.1 ;;
        opencode) package=opencode-ai@1.18.33 ;;
        *) echo "install.sh: unknown client: $client (codex, claude, pi, opencode)" >&2; exit 2 ;;
    esac
    install "$client" "$package"
    printf '#!/bin/sh\nPATH=%s:$PATH exec %s "$@"\n' "$node_bin" "$prefix/$client/node_modules/.bin/$client" > "$prefix/bin/$client"
    chmod +x "$prefix/bin/$client"
    version=$("$prefix/bin/$client" --version 2>/dev/null | head -n 1) || version=
    case $version in
        *"${package##*@}"*) echo "$client $version" ;;
        *)
            rm -f "$prefix/$client/.installed"
            echo "install.sh: $client says \`$version\` for its version, not ${package##*@}; run this again, or remove $prefix/$client" >&2
            exit 1
            ;;
    esac
done
