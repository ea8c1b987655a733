package dist

import "manta/planner/plan"

// ParallelScan is the share of the bytes of all scanned files that several tasks
// read, each its part; bytes gives the size of a file. A table that every task
// reads whole counts once, and as not shared out.
func (p *Plan) ParallelScan(bytes func(file string) int64) float64 {
	var parallel, all int64
	for _, s := range p.Stages {
		plan.Walk(s.Root, func(n plan.Node) bool {
			if scan, ok := n.(*Scan); ok {
				for _, f := range scan.Get.Files {
					all += bytes(f)
					if scan.Split && s.Tasks > 1 {
						parallel += bytes(f)
					}
				}
			}
			return true
		})
	}
	if all == 0 {
		return 0
	}
	return float64(parallel) / float64(all)
}
