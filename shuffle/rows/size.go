package rows

import "github.com/apache/arrow-go/v18/arrow"

// Size is the memory of a batch: the bytes of all its buffers, as far as its rows reach.
func Size(batch arrow.RecordBatch) int64 { return arrayBytes(batch.Columns()) }

func arrayBytes(cols []arrow.Array) (n int64) {
	for _, c := range cols {
		n += dataBytes(c.Data())
	}
	return n
}

func dataBytes(d arrow.ArrayData) int64 { return spanBytes(d, d.Offset(), d.Len()) }

// spanBytes counts n rows of d's buffers, from a place there. Of types without offsets, values of one width or children, it takes
// what is due in proportion.
func spanBytes(d arrow.ArrayData, from, n int) int64 {
	if n == 0 {
		return 0
	}
	dt := d.DataType()
	for {
		e, ok := dt.(arrow.ExtensionType)
		if !ok {
			break
		}
		dt = e.StorageType()
	}
	bufs, valid := d.Buffers(), int64(0)
	if len(bufs) > 0 && bufs[0] != nil {
		valid = int64(n+7) / 8
	}
	switch t := dt.(type) {
	case *arrow.StringType, *arrow.BinaryType:
		first, last := reach[int32](d, from, n)
		return valid + int64(n)*4 + int64(last-first)
	case *arrow.LargeStringType, *arrow.LargeBinaryType:
		first, last := reach[int64](d, from, n)
		return valid + int64(n)*8 + int64(last-first)
	case *arrow.ListType, *arrow.MapType:
		first, last := reach[int32](d, from, n)
		return valid + int64(n)*4 + childBytes(d, 0, first, last-first)
	case *arrow.LargeListType:
		first, last := reach[int64](d, from, n)
		return valid + int64(n)*8 + childBytes(d, 0, first, last-first)
	case *arrow.FixedSizeListType:
		return valid + childBytes(d, 0, from*int(t.Len()), n*int(t.Len()))
	case *arrow.StructType:
		for i := range d.Children() {
			valid += childBytes(d, i, from, n)
		}
		return valid
	case *arrow.DictionaryType:
		if dict := d.Dictionary(); dict != nil {
			valid += dataBytes(dict)
		}
		return valid + int64(n)*int64(t.IndexType.(arrow.FixedWidthDataType).BitWidth())/8
	case arrow.FixedWidthDataType:
		return valid + (int64(n)*int64(t.BitWidth())+7)/8
	}
	all := int64(0)
	for _, b := range bufs {
		if b != nil {
			all += int64(b.Len())
		}
	}
	for _, c := range d.Children() {
		all += dataBytes(c)
	}
	return all * int64(n) / int64(max(n, d.Len()+d.Offset()))
}

// childBytes counts rows of a child, from a place that its parent has for them.
func childBytes(d arrow.ArrayData, i, from, n int) int64 {
	c := d.Children()[i]
	return spanBytes(c, c.Offset()+from, n)
}

// reach is where values of offsets begin and end.
func reach[O int32 | int64](d arrow.ArrayData, from, n int) (first, last int) {
	b := d.Buffers()[1]
	if b == nil || b.Len() == 0 {
		return 0, 0
	}
	offsets := as[O](b.Bytes())
	return int(offsets[from]), int(offsets[from+n])
}
