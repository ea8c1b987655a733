package tpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/array"

	"manta/planner/kernel"
)

// texts are the queries and answers as the generator has them.
type texts struct {
	queries []string
	answers map[string][]string // by scale factor
}

// readTexts asks the generator.
func (s Suite) readTexts() (*texts, error) {
	db, err := openGenerator(kernel.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { _ = db.Close() }()
	c, err := db.Connect()
	if err != nil {
		return nil, err
	}
	defer c.Close()
	t := &texts{queries: make([]string, s.NumQueries), answers: map[string][]string{}}
	err = s.each(c, "SELECT '', query_nr::INTEGER, query FROM "+s.Name+"_queries()", func(_ string, n int, text string) {
		t.queries[n-1] = strings.TrimSuffix(strings.TrimSpace(text), ";")
	})
	if err != nil || !s.answers {
		return t, err
	}
	err = s.each(c, "SELECT scale_factor::VARCHAR, query_nr::INTEGER, answer FROM "+s.Name+"_answers()", func(sf string, n int, text string) {
		if t.answers[sf] == nil {
			t.answers[sf] = make([]string, s.NumQueries)
		}
		t.answers[sf][n-1] = text
	})
	return t, err
}

// each calls f for each row of (text, number of a query, text).
func (s Suite) each(c *kernel.Conn, sql string, f func(string, int, string)) error {
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
			if n < 1 || n > s.NumQueries {
				b.Release()
				return fmt.Errorf("tpc: %s has a query number %d", s.Title, n)
			}
			f(strings.Clone(key.Value(i)), n, strings.Clone(text.Value(i)))
		}
		b.Release()
	}
}

// Queries returns the texts of the queries, with the validation parameters.
func (s *Suite) Queries() ([]string, error) {
	t, err := s.texts()
	if err != nil {
		return nil, err
	}
	return t.queries, nil
}

// ErrNoAnswers is returned by Answers where there are no official answers.
var ErrNoAnswers = errors.New("tpc: official answers exist for TPC-H at scale factors 0.01, 0.1 and 1")

// Answers returns the official answers at a scale factor: for each query a line of column names and a line for each
// row, fields separated by "|".
func (s *Suite) Answers(sf float64) ([]string, error) {
	t, err := s.texts()
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
