package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// A printed cast says in a comment where the query has it, so that an error that
// points at it can be told in the user's own terms.

const (
	originOpen  = "/*@"
	originClose = "*/"
)

func origin(at int) string {
	if at == 0 {
		return ""
	}
	return fmt.Sprintf("%s%d%s", originOpen, at, originClose)
}

// Origin tells where the query has what stands at a position of a printed text;
// both count from 1, and 0 says that it is not known.
func Origin(text string, position int) int {
	if position < 1 || position > len(text) {
		return 0
	}
	rest := text[position-1:]
	for _, call := range []string{"CAST(", "TRY_CAST("} {
		if after, ok := strings.CutPrefix(rest, call+originOpen); ok {
			digits, _, _ := strings.Cut(after, originClose)
			at, err := strconv.Atoi(digits)
			if err != nil {
				return 0
			}
			return at
		}
	}
	return 0
}
