package kernel

import (
	"encoding/json"
	"strconv"
	"strings"
)

// Error is an error that DuckDB reports.
type Error struct {
	Type     string // DuckDB's name: Parser, Binder, Catalog, IO, Out of Memory, Interrupt, Conversion, ...
	Message  string // one line
	Position int    // 1-based offset into the SQL text, in bytes, for errors of the grammar in characters; 0 = unknown
}

// Error is "Type Error: message".
func (e *Error) Error() string {
	if e.Type == "" {
		return e.Message
	}
	return e.Type + " Error: " + e.Message
}

// newError reads a message of DuckDB: an object, from connections with errors_as_json, or plain text. Errors of the
// parser come as an object inside the plain text.
func newError(message string) *Error {
	e := &Error{Message: message}
	if kind, rest, ok := strings.Cut(message, " Error: "); ok && !strings.ContainsAny(kind, "{.:\n") {
		e.Type, e.Message = kind, rest
	}
	var object struct {
		Type     string `json:"exception_type"`
		Message  string `json:"exception_message"`
		Position string `json:"position"`
	}
	if strings.HasPrefix(e.Message, "{") && json.Unmarshal([]byte(e.Message), &object) == nil && object.Type != "" {
		e.Type, e.Message = object.Type, object.Message
		e.Position = position(object.Position)
	}
	e.Message = oneLine(e.Message)
	return e
}

// position turns DuckDB's 0-based offset into ours.
func position(text string) int {
	at, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return at + 1
}

// oneLine drops the quotation of the SQL text ("LINE 1: ..." and the caret) and joins what else has line breaks.
func oneLine(message string) string {
	if at := strings.Index(message, "\nLINE "); at >= 0 {
		message = message[:at]
	}
	lines := strings.FieldsFunc(message, func(r rune) bool { return r == '\n' || r == '\r' })
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.TrimSpace(strings.Join(lines, " "))
}
