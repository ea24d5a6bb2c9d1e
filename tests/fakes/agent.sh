#!/bin/sh
# A scripted agent: does what its arguments say, in order.
for act in "$@"; do
    arg=${act#*=}
    case "$act" in
    commit=*)
        echo work >"$arg"
        git add -- "$arg"
        git -c user.name=agent -c user.email=agent@example.invalid commit -qm "Add $arg" || exit 90
        ;;
    dirty=*) echo unfinished >"$arg" ;;
    say=*) echo "$arg" ;;
    warn=*) echo "$arg" >&2 ;;
    half=*) printf '%s' "$arg" ;;
    env=*) env >"$arg.part" && mv "$arg.part" "$arg" ;;
    prompt=*) cat >"$arg" ;;
    flag=*) : >"$arg" ;;
    await=*) while ! [ -e "$arg" ]; do sleep 0.02; done ;;
    ignore_term) trap '' TERM ;;
    daemon=*)
        (setsid sh -c 'trap "" TERM HUP; : >"$1"; while :; do sleep 1; done' daemon "$arg" >/dev/null 2>&1 &)
        while ! [ -e "$arg" ]; do sleep 0.02; done
        ;;
    hang) while :; do sleep 1; done ;;
    flood=*) yes "one of many lines" | head -n "$arg" ;;
    endless=*) head -c "$arg" /dev/zero | tr '\0' x ;;
    die=*) kill "-$arg" $$ ;;
    exit=*) exit "$arg" ;;
    *)
        echo "agent.sh: what is $act?" >&2
        exit 91
        ;;
    esac
done
