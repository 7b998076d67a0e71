echo "a line for the log" >&2
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
text() { answer "{\"content\":[{\"type\":\"text\",\"text\":\"$1\"}]}"; }
tool() { printf '{"name":"%s","description":"The tool %s.","inputSchema":{"type":"object"}}' "$1" "$1"; }
while IFS= read -r line; do
  rest=${line#*\"id\":}
  id=${rest%%[,\}]*}
  case $line in
    *'"method":"server/discover"'*)
      printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "$id" ;;
    *'"method":"initialize"'*)
      answer '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"shell","version":"1"}}' ;;
    *'"method":"notifications/'*) ;;
    *'"method":"tools/list"'*)
      answer "{\"tools\":[$(tool echo),$(tool environment),$(tool die),$(tool sleep),$(tool pid)]}" ;;
    *'"name":"echo"'*) text "echo" ;;
    *'"name":"environment"'*) text "$(env | cut -d= -f1 | sort | tr '\n' ' ')KEY=$KEY" ;;
    *'"name":"die"'*) exit 3 ;;
    *'"name":"sleep"'*) ;;
    *'"name":"pid"'*) text "$$" ;;
    *) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}\n' "$id" ;;
  esac
done
