package planner

import (
	"errors"
	"net"
	"os"
	"regexp"
	"strings"
)

// A relative path in a query begins at the folder of who asks. An embedded
// cluster is in it. Nodes of this machine are told of it; on other machines there
// is no such folder, and an error says so.

// loopback reports whether an address is one of this machine, for itself.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// searchPath is this process's folder as DuckDB can be told of it: its setting is a list, parted by commas.
func searchPath() string {
	folder, err := os.Getwd()
	if err != nil || strings.Contains(folder, ",") {
		return ""
	}
	return folder
}

var notFound = regexp.MustCompile(`No files found that match the pattern "([^"]*)"`)

// hint adds to an error about a relative path where it was looked for.
func (c *Client) hint(err error) error {
	query, ok := errors.AsType[*QueryError](err)
	if !ok || c.embedded != nil || c.folder != "" {
		return err
	}
	m := notFound.FindStringSubmatch(query.Message)
	if m == nil || strings.HasPrefix(m[1], "/") || strings.Contains(m[1], "://") {
		return err
	}
	told := *query
	told.Message += ": the cluster is not in this folder; give the whole path"
	return &told
}
