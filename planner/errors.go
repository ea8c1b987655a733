package planner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"manta/actors"
	"manta/planner/kernel"
	"manta/planner/plan"
	"manta/shuffle"
)

// An error of DuckDB points into the text that DuckDB was given. A task's is a
// fragment, which nobody but Manta has seen: the task finds out where the query
// has what the fragment has there, and writes that behind the message, for an
// error travels as text. The head takes it off again, and quotes the line.

// located is a message that says where in the query it is about; 0: nobody knows.
func located(message string, at int) string {
	if at == 0 {
		return message
	}
	return fmt.Sprintf("%s\x1f%d\x1f", message, at)
}

// pointed is an error of the query with the place in it, if the error says nothing of one and it is known all the same.
func (r *run) pointed(err error) error {
	if err == nil || r.query == nil || location.MatchString(err.Error()) {
		return err
	}
	if at := plan.Place(r.query.planned, err.Error()); at > 0 {
		return fmt.Errorf("%w%s", err, located("", at))
	}
	return err
}

var location = regexp.MustCompile("\x1f(\\d+)\x1f")

// cutLocation takes off what located has put there.
func cutLocation(text string) (string, int) {
	m := location.FindStringSubmatchIndex(text)
	if m == nil {
		return text, 0
	}
	at, err := strconv.Atoi(text[m[2]:m[3]])
	if err != nil {
		return text, 0
	}
	return text[:m[0]] + text[m[1]:], at
}

// memoryError is an error of DuckDB's that is also one of the runtime's: actors.ErrOutOfMemory. Its text is DuckDB's.
type memoryError struct{ error }

func (e memoryError) Unwrap() []error { return []error{e.error, actors.ErrOutOfMemory} }

// memoryKind gives an error of DuckDB's about memory the runtime's kind, which it keeps on its way to other processes.
func memoryKind(err error) error {
	if outOfMemory(err) {
		return memoryError{err}
	}
	return err
}

// toStatus makes an RPC error of a query's: one line, where there is a place in
// the query a quotation of it below, and a code for its kind.
func toStatus(err error, query string) error {
	if err == nil {
		return nil
	}
	var sql *kernel.Error
	code := codes.FailedPrecondition
	switch {
	case errors.Is(err, actors.ErrNodeDead), errors.Is(err, shuffle.ErrPeer):
		code = codes.Unavailable // also when the error is that of a task that was cancelled because of it
	case errors.Is(err, context.Canceled), errors.Is(err, actors.ErrJobStopped):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	case errors.As(err, &sql):
		code = codes.InvalidArgument
	}
	return status.Error(code, message(err, query))
}

// message is an error for a user.
func message(err error, query string) string {
	text, at := cutLocation(err.Error())
	// What went wrong comes first, where it did last.
	where := ""
	if task, ok := errors.AsType[*actors.TaskError](err); ok {
		if rest, begins := strings.CutPrefix(text, fmt.Sprintf("task %s on node %s: ", task.Name, task.Node)); begins {
			text, where = rest, "on node "+string(task.Node)
			if task.Name != wholeTask {
				where = task.Name + " " + where
			}
		}
	}
	// What a reader says of its producer is about the producer, and that one's number means nothing to a user.
	if m := producerFailed.FindStringSubmatchIndex(text); m != nil {
		if !strings.Contains(text[:m[0]], restartAfter) {
			where = "on node " + text[m[2]:m[3]]
		}
		text = text[:m[0]] + text[m[1]:]
	}
	if where != "" {
		text += " (" + where + ")"
	}
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "\n", "; ")), " ")
	// DuckDB's advice on memory is about settings that a user here does not have.
	if advice := strings.Index(text, " Possible solutions:"); advice >= 0 && strings.Contains(text, "Out of Memory Error") {
		text = strings.TrimRight(text[:advice], "; ") + "; give the nodes more memory, or use fewer partitions"
	}
	if limit := strings.Index(text, " This limit was set by the 'max_temp_directory_size'"); limit >= 0 {
		text = strings.TrimRight(text[:limit], "; .") + "; the disk of the node's data folder is full or its --max-spill is reached; give the node more of either, or more memory"
	}
	if m := missingExtension.FindStringSubmatch(text); m != nil {
		text = fmt.Sprintf("DuckDB's extension %s is needed, and not installed on the node; let DuckDB's own program run INSTALL %[1]s there, for the user that runs the node", m[1])
	}
	if strings.Contains(text, "No magic bytes found") {
		text += ": it is no Parquet file"
	}
	var sql *kernel.Error
	if errors.As(err, &sql) && sql.Position > 0 {
		at = bytePosition(sql, query)
	}
	if line, column, quote, ok := quoted(query, at); ok {
		text += fmt.Sprintf(" (line %d, column %d)\n%s", line, column, quote)
	}
	return text
}

// producerFailed is what shuffle.ErrProducer puts before the error of a task, and the tasks that have read of one another.
var producerFailed = regexp.MustCompile(`(?:(?:task [^:]* on node \S+: )?(?:shuffle: )?producer failed: task \S+ on node (\S+): )+`)

// bytePosition is the byte of a query that an error points at. DuckDB's grammar
// counts characters, everything behind it bytes.
func bytePosition(err *kernel.Error, query string) int {
	grammar := strings.Contains(err.Message, " at or near ") || strings.HasSuffix(err.Message, " at end of input")
	if err.Type != "Parser" || !grammar {
		return err.Position
	}
	characters := 1
	for at := range query {
		if characters == err.Position {
			return at + 1
		}
		characters++
	}
	return len(query) + 1
}

// missingExtension is in DuckDB's advice on what a SELECT can't do.
var missingExtension = regexp.MustCompile(`Install it first using "INSTALL (\w+)"`)

// quoteWidth is about how much of a long line is quoted.
const quoteWidth = 100

// quoted gives the line and the column, in characters from 1, of a byte of a
// query, and two lines: the query's own, and a caret below the place.
func quoted(query string, position int) (line, column int, quote string, ok bool) {
	if position < 1 || position > len(query)+1 {
		return 0, 0, "", false
	}
	before, after := query[:position-1], query[position-1:]
	line = strings.Count(before, "\n") + 1
	before = before[strings.LastIndexByte(before, '\n')+1:]
	after, _, _ = strings.Cut(after, "\n")
	column = utf8.RuneCountInString(before) + 1
	plain := strings.NewReplacer("\t", " ", "\r", "")
	left, right := []rune(plain.Replace(before)), []rune(plain.Replace(after))
	cutLeft, cutRight := "", ""
	if most := quoteWidth * 2 / 3; len(left) > most {
		left, cutLeft = left[len(left)-most:], "..."
	}
	if most := quoteWidth - len(left); len(right) > most {
		right, cutRight = right[:most], "..."
	}
	head := fmt.Sprintf("LINE %d: %s%s", line, cutLeft, string(left))
	return line, column, head + string(right) + cutRight + "\n" + strings.Repeat(" ", utf8.RuneCountInString(head)) + "^", true
}
