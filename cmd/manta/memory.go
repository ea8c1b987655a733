package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"manta/actors"
	"manta/objectstore"
)

func memoryCommand() *cobra.Command {
	var f headFlags
	c := &cobra.Command{
		Use:   "memory",
		Short: "Show what the object stores of a cluster hold, where, and how fast they spill",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			nodes, err := f.memory(c, 0)
			if err != nil {
				return err
			}
			if f.output == "json" {
				return writeJSON(c.OutOrStdout(), nodes)
			}
			writeMemory(c.OutOrStdout(), nodes)
			return nil
		},
	}
	f.add(c)
	return c
}

// nodeObject is an object and the node whose store has it.
type nodeObject struct {
	Node actors.NodeID `json:"node"`
	objectstore.ObjectInfo
}

func listObjects() *cobra.Command {
	var f headFlags
	var limit int
	c := &cobra.Command{
		Use:   "objects",
		Short: "List the objects in the stores of all nodes, the largest first",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if limit < 1 || limit > 1_000_000 {
				return usagef("--limit %d: give 1 to 1000000", limit)
			}
			nodes, err := f.memory(c, limit)
			if err != nil {
				return err
			}
			objects, all := []nodeObject{}, int64(0)
			for _, n := range nodes {
				if n.Error != "" {
					fmt.Fprintf(c.ErrOrStderr(), "manta: node %s: %s\n", n.Node, n.Error)
				}
				all += n.Store.Objects
				for _, o := range n.Objects {
					objects = append(objects, nodeObject{n.Node, o})
				}
			}
			slices.SortStableFunc(objects, func(a, b nodeObject) int { return cmp.Compare(b.Size, a.Size) })
			objects = objects[:min(len(objects), limit)]
			if f.output == "json" {
				return writeJSON(c.OutOrStdout(), objects)
			}
			writeObjects(c.OutOrStdout(), objects, time.Now())
			if more := all - int64(len(objects)); more > 0 {
				fmt.Fprintf(c.OutOrStdout(), "… and %s smaller ones; see --limit\n", humanize.Comma(more))
			}
			return nil
		},
	}
	f.add(c)
	c.Flags().IntVar(&limit, "limit", 1000, "how many objects to list")
	return c
}

// memory asks the head what the stores have.
func (f *headFlags) memory(c *cobra.Command, largest int) ([]actors.NodeMemory, error) {
	client, err := f.ask(c)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	nodes, err := client.Memory(c.Context(), largest)
	if nodes == nil {
		nodes = []actors.NodeMemory{}
	}
	return nodes, err
}

func writeMemory(w io.Writer, nodes []actors.NodeMemory) {
	tiers := newTable(w, "node", "objects", "small", "in memory", "on disk", "memory used", "peak", "limit", "unsealed", "waiting", "disk", "index", "note")
	traffic := newTable(w, "node", "puts", "gets", "spilled", "at", "restored", "at", "evictions", "compacted")
	rate := func(perSecond float64) string {
		if perSecond == 0 {
			return ""
		}
		return fmt.Sprintf("%.2g GB/s", perSecond/1e9)
	}
	for _, n := range nodes {
		s := n.Store
		tiers.AppendRow(table.Row{
			n.Node, tierText(objectstore.Tier{Objects: s.Objects, Bytes: s.Bytes}), tierText(s.Inline), tierText(s.Memory), tierText(s.Spilled),
			size(s.MemoryUsed), size(s.MemoryPeak), size(s.MemoryLimit), size(s.Unsealed), s.Waiting, size(s.DiskBytes + s.BadgerBytes), size(s.IndexBytes),
			cmp.Or(n.Error, s.Trouble),
		})
		if n.Error == "" {
			traffic.AppendRow(table.Row{
				n.Node, humanize.Comma(s.Puts), humanize.Comma(s.Gets), size(s.BytesSpilled), rate(s.SpillRate), size(s.BytesRestored), rate(s.RestoreRate),
				humanize.Comma(s.Evictions), size(s.BytesCompacted),
			})
		}
	}
	tiers.Render()
	fmt.Fprintln(w)
	traffic.Render()
}

func writeObjects(w io.Writer, objects []nodeObject, now time.Time) {
	t := newTable(w, "object", "node", "size", "tier", "pins", "owner", "age", "made by", "held by")
	for _, o := range objects {
		holders := fmt.Sprint(len(o.Holders))
		if len(o.Holders) == 1 && o.Holders[0] == o.Owner {
			holders = "owner"
		}
		age := max(now.Sub(o.Created), 0).Round(time.Second)
		t.AppendRow(table.Row{o.ID, o.Node, size(o.Size), o.Tier, o.Pins, o.Owner, age, o.Label, holders})
	}
	t.Render()
}

func size(n int64) string { return humanize.IBytes(uint64(max(n, 0))) }

func tierText(t objectstore.Tier) string {
	return fmt.Sprintf("%s (%s)", size(t.Bytes), humanize.Comma(t.Objects))
}
