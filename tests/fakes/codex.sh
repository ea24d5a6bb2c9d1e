#!/bin/sh
# A scripted agent that speaks the protocol of Codex's app-server. What it does in a turn is in the place of TURN: shell, in which
# `call TOOL ARGUMENTS` calls one of the runner's tools (ARGUMENTS is JSON) and leaves the answer in $heard.
id_of() { printf '%s' "$1" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p'; }
answer() { printf '{"id":%s,"result":%s}\n' "$1" "$2"; }
asked=900
call() {
    asked=$((asked + 1))
    printf '{"id":%s,"method":"item/tool/call","params":{"threadId":"th-1","turnId":"tu-%s","callId":"c%s","tool":"%s","arguments":%s}}\n' "$asked" "$turn" "$asked" "$1" "$2"
    while read -r heard; do
        case "$heard" in *"\"id\":$asked"*) return 0 ;; esac
    done
    exit 0
}
turn=0
act() {
    TURN
}
while read -r line; do
    id=$(id_of "$line")
    case "$line" in
    *'"initialize"'*) answer "$id" '{"codexHome":"/nowhere","platformFamily":"unix","platformOs":"linux","userAgent":"fake"}' ;;
    *'"thread/start"'*) printf '%s\n' "$line" >>"$DIRIGENT_ARTIFACTS/thread"; answer "$id" '{"thread":{"id":"th-1"},"model":"mock"}' ;;
    *'"thread/resume"'*) answer "$id" '{"thread":{"id":"th-1"},"model":"mock"}' ;;
    *'"thread/name/set"'*) printf '%s\n' "$line" >>"$HOME/thread-names"; answer "$id" '{}' ;;
    *'"turn/start"'*)
        turn=$((turn + 1))
        printf '%s\n' "$line" >>"$DIRIGENT_ARTIFACTS/prompts"
        answer "$id" "{\"turn\":{\"id\":\"tu-$turn\",\"status\":\"inProgress\"}}"
        printf '{"method":"turn/started","params":{"threadId":"th-1","turn":{"id":"tu-%s"}}}\n' "$turn"
        act
        printf '{"method":"turn/completed","params":{"threadId":"th-1","turn":{"id":"tu-%s","status":"completed"}}}\n' "$turn"
        ;;
    esac
done
