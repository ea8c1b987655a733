// Package split shares the row groups of a scan's files among its tasks.
//
// A share is a list of row ranges. Shares are disjoint, cover every row once,
// and are balanced by bytes: row groups are dealt out in file order, so a task
// reads long runs of neighbouring row groups, and one file may be shared by
// many tasks. A row group is never divided, so no task decodes a row group that
// another one decodes too.
package split

// File is one source file as its footer describes it.
type File struct {
	Path   string
	Size   int64 // bytes on disk
	Mtime  int64 // nanoseconds since 1970
	Groups []RowGroup
}

// RowGroup is a run of rows that is stored, and read, together.
type RowGroup struct {
	Rows  int64
	Bytes int64 // uncompressed
}

// Range is the rows [First, End) of one file.
type Range struct {
	Path       string
	First, End int64
	Whole      bool // the range is all of the file
}

// Rows returns the number of rows of a file.
func (f File) Rows() int64 {
	var n int64
	for _, g := range f.Groups {
		n += g.Rows
	}
	return n
}

// Bytes returns the uncompressed bytes of a file.
func (f File) Bytes() int64 {
	var n int64
	for _, g := range f.Groups {
		n += g.Bytes
	}
	return n
}

// Split deals the row groups of files out to n tasks. The result has n shares;
// some are empty when there are fewer row groups than tasks.
func Split(files []File, n int) [][]Range {
	shares := make([][]Range, n)
	var total int64
	for _, f := range files {
		total += weight(f)
	}
	var before int64 // weight of the groups already dealt
	for _, f := range files {
		rows := f.Rows()
		var at int64
		for _, g := range f.Groups {
			w := g.Bytes + 1 // a group without bytes must still move on
			// The middle of the group decides whose it is: this keeps every share
			// within half a group of the ideal.
			task := int((float64(before) + float64(w)/2) / float64(total) * float64(n))
			task = min(task, n-1)
			if g.Rows > 0 {
				shares[task] = extend(shares[task], f.Path, at, at+g.Rows, rows)
			}
			at += g.Rows
			before += w
		}
	}
	return shares
}

func weight(f File) int64 { return f.Bytes() + int64(len(f.Groups)) }

// extend adds rows [first, end) to a share, joining them to its last range when they follow it.
func extend(share []Range, path string, first, end, rows int64) []Range {
	if k := len(share) - 1; k >= 0 && share[k].Path == path && share[k].End == first {
		share[k].End = end
		share[k].Whole = share[k].First == 0 && end == rows
		return share
	}
	return append(share, Range{Path: path, First: first, End: end, Whole: first == 0 && end == rows})
}
