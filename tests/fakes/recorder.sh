#!/bin/sh
# An agent that writes down how it was started and what it was told, answers every request alike, and leaves after the prompt.
# The first argument is the file to write to.
record=$1
shift
{
    for argument in "$@"; do printf 'argument %s\n' "$argument"; done
    printf 'home %s\n' "${CODEX_HOME:-}"
} >"$record"
while read -r line; do
    printf 'told %s\n' "$line" >>"$record"
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p')
    case $line in
    *'"turn/start"'* | *'"session/prompt"'* | *'"type":"user"'* | *'"type":"prompt"'*) exit 3 ;;
    *'"get_state"'*) printf '{"id":"%s","type":"response","command":"get_state","success":true,"data":{"sessionId":"s1"}}\n' "$(printf '%s' "$line" | sed -n 's/.*"id":"\([^"]*\)".*/\1/p')" ;;
    *'"control_request"'*) printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$(printf '%s' "$line" | sed -n 's/.*"request_id":"\([^"]*\)".*/\1/p')" ;;
    *) printf '{"jsonrpc":"2.0","id":%s,"result":{"thread":{"id":"t1"},"sessionId":"s1","protocolVersion":1}}\n' "$id" ;;
    esac
done
