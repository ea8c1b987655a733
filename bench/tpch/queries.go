package tpch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/apache/arrow-go/v18/arrow/array"

	"manta/planner/kernel"
)

// NumQueries is the number of queries; query n is at index n-1.
const NumQueries = 22

// texts are the queries and answers as the generator has them; they are read once.
var texts = sync.OnceValues(func() (t struct {
	queries []string
	answers map[string][]string
}, err error) {
	db, err := openGenerator(kernel.Config{})
	if err != nil {
		return t, err
	}
	defer func() { _ = db.Close() }()
	c, err := db.Connect()
	if err != nil {
		return t, err
	}
	defer c.Close()
	t.queries = make([]string, NumQueries)
	t.answers = map[string][]string{}
	err = each(c, "SELECT '', query_nr::INTEGER, query FROM tpch_queries()", func(_ string, n int, text string) {
		t.queries[n-1] = strings.TrimSuffix(strings.TrimSpace(text), ";")
	})
	if err != nil {
		return t, err
	}
	err = each(c, "SELECT scale_factor::VARCHAR, query_nr::INTEGER, answer FROM tpch_answers()", func(sf string, n int, text string) {
		if t.answers[sf] == nil {
			t.answers[sf] = make([]string, NumQueries)
		}
		t.answers[sf][n-1] = text
	})
	return t, err
})

// each calls f for each row of (text, number of a query, text).
func each(c *kernel.Conn, sql string, f func(string, int, string)) error {
	rows, err := c.Query(context.Background(), sql)
	if err != nil {
		return err
	}
	defer rows.Close()
	for {
		b, err := rows.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		key, number, text := b.Column(0).(*array.String), b.Column(1).(*array.Int32), b.Column(2).(*array.String)
		for i := range int(b.NumRows()) {
			n := int(number.Value(i))
			if n < 1 || n > NumQueries {
				b.Release()
				return fmt.Errorf("tpch: query number %d", n)
			}
			f(strings.Clone(key.Value(i)), n, strings.Clone(text.Value(i)))
		}
		b.Release()
	}
}

// Queries returns the texts of the 22 queries, with the validation parameters.
func Queries() ([]string, error) {
	t, err := texts()
	return t.queries, err
}

// ErrNoAnswers is returned by Answers for scale factors without official answers.
var ErrNoAnswers = errors.New("tpch: official answers exist for scale factors 0.01, 0.1 and 1")

// Answers returns the official answers at scale factor 0.01, 0.1 or 1: for each query a line of column names and a
// line for each row, fields separated by "|".
func Answers(sf float64) ([]string, error) {
	t, err := texts()
	if err != nil {
		return nil, err
	}
	for key, answers := range t.answers {
		var have float64
		if _, err := fmt.Sscan(key, &have); err == nil && have == sf {
			return answers, nil
		}
	}
	return nil, ErrNoAnswers
}
