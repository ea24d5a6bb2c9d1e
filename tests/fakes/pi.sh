#!/bin/sh
# A scripted agent that speaks pi's RPC protocol. What it does when it is prompted is in the place of TURN: shell, which may leave its last
# words in $say, as they stand in JSON.
id_of() { printf '%s' "$1" | sed -n 's/.*"id":"\([a-z0-9]*\)".*/\1/p'; }
answer() { printf '{"type":"response","id":"%s","command":"%s","success":true,"data":%s}\n' "$1" "$2" "$3"; }
act() {
    TURN
}
while read -r line; do
    id=$(id_of "$line")
    case "$line" in
    *'"type":"get_state"'*) answer "$id" get_state '{"sessionId":"s-1","messageCount":0,"isStreaming":false}' ;;
    *'"type":"prompt"'*)
        printf '%s\n' "$line" >>"$DIRIGENT_ARTIFACTS/prompts"
        answer "$id" prompt null
        echo '{"type":"agent_start"}'
        say=
        act >/dev/null
        [ -z "$say" ] || printf '{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"%s"}],"stopReason":"stop","timestamp":1}}\n' "$say"
        echo '{"type":"agent_end","messages":[],"willRetry":false}'
        echo '{"type":"agent_settled"}'
        ;;
    esac
done
