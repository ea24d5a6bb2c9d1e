#!/bin/sh
# A scripted agent that speaks the Agent Client Protocol. Each argument is one turn: acts of agent.sh between commas,
# or `ask` (for a permission, its answer goes to answer.txt), or `wait` (until the turn is cancelled).
# What it was prompted with is kept in $DIRIGENT_ARTIFACTS/prompts.
here=$(dirname "$0")
id_of() { printf '%s' "$1" | sed -n 's/.*"id":\([0-9][0-9]*\).*/\1/p'; }
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
until_line() {
    while read -r heard; do
        case "$heard" in *"$1"*) return 0 ;; esac
    done
    exit 0
}
while read -r line; do
    id=$(id_of "$line")
    case "$line" in
    *'"initialize"'*) answer "$id" '{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"session/new"'*) answer "$id" '{"sessionId":"s1"}' ;;
    *'"session/prompt"'*)
        printf '%s\n' "$line" >>"$DIRIGENT_ARTIFACTS/prompts"
        turn=$1
        [ $# -gt 0 ] && shift
        reason=end_turn
        case "$turn" in
        ask)
            echo '{"jsonrpc":"2.0","id":900,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c1","kind":"execute","title":"make all"},"options":[{"optionId":"yes","kind":"allow_once","name":"Yes"},{"optionId":"no","kind":"reject_once","name":"No"}]}}'
            until_line '"id":900'
            printf '%s\n' "$heard" >answer.txt
            ;;
        wait)
            until_line '"session/cancel"'
            reason=cancelled
            ;;
        '') ;;
        *)
            IFS=,
            "$here/agent.sh" $turn >/dev/null </dev/null
            unset IFS
            ;;
        esac
        answer "$id" "{\"stopReason\":\"$reason\"}"
        ;;
    esac
done
