-- scan
SELECT * FROM big;
-- filter
SELECT id, s FROM big WHERE k = 5 AND d > 10;
-- empty result
SELECT k, count(*) FROM big WHERE id < 0 GROUP BY k;
-- empty table
SELECT count(*), sum(x), min(y) FROM nothing;
-- empty table grouped
SELECT x, count(*) FROM nothing GROUP BY x;
-- join with an empty table
SELECT count(*) FROM big LEFT JOIN nothing ON big.id = nothing.x;
-- global aggregate
SELECT count(*), count(g), sum(d), avg(d), min(s), max(day), bool_or(b), sum(id), avg(k), avg(id) FROM big;
-- global aggregate of nothing
SELECT count(*), count(g), sum(d), avg(d), min(s) FROM big WHERE id < 0;
-- grouped aggregate
SELECT k, count(*), sum(d), avg(d), min(s) FROM big GROUP BY k;
-- group by null key
SELECT g, count(*), avg(k) FROM big GROUP BY g;
-- group by expression
SELECT year(day), substr(s, 1, 6), sum(d) FROM big GROUP BY ALL;
-- aggregate filter
SELECT g, count(*) FILTER (WHERE b), sum(d) FILTER (WHERE k < 10) FROM big GROUP BY g;
-- count distinct
SELECT g, count(DISTINCT s), sum(DISTINCT k), count(*) FROM big GROUP BY g;
-- global count distinct
SELECT count(DISTINCT s), count(DISTINCT g) FROM big;
-- aggregates without partial form
SELECT g, median(k), mode(b), stddev_pop(k), arg_max(s, id) FROM big GROUP BY g;
-- global without partial form
SELECT median(k), stddev_pop(k) FROM big;
-- rollup
SELECT g, b, count(*), grouping(g), grouping(b) FROM big GROUP BY ROLLUP (g, b);
-- grouping sets over nothing
SELECT g, count(*) FROM big WHERE id < 0 GROUP BY GROUPING SETS ((g), ());
-- grouping sets with a common key
SELECT k, g, b, count(*) FROM big GROUP BY GROUPING SETS ((k, g), (k, b), (k));
-- having
SELECT k, sum(d) AS t FROM big GROUP BY k HAVING sum(d) > 9000;
-- distinct
SELECT DISTINCT g, b FROM big;
-- distinct of many
SELECT DISTINCT id, g FROM big;
-- count of distinct
SELECT count(*) FROM (SELECT DISTINCT k, s FROM big);
-- distinct on
SELECT DISTINCT ON (k) k, id FROM big ORDER BY k, id;
-- inner join of other types
SELECT n, count(*), sum(d) FROM big JOIN dim ON big.k = dim.k GROUP BY n;
-- join and keep all
SELECT big.id, n FROM big JOIN dim ON big.k = dim.k WHERE c = 3;
-- left join
SELECT n, count(id) FROM dim LEFT JOIN big ON big.k = dim.k GROUP BY n;
-- right join
SELECT n, count(id) FROM big RIGHT JOIN dim ON big.k = dim.k AND big.d > 100 GROUP BY n;
-- full join
SELECT count(*), count(big.id), count(n) FROM big FULL JOIN dim ON big.g = dim.k;
-- full join without equality
SELECT count(*), count(s.id), count(b.id) FROM ship s FULL JOIN ban b ON s.id < b.id;
-- null safe join
SELECT count(*) FROM big JOIN dim ON big.g IS NOT DISTINCT FROM dim.k;
-- semi join
SELECT count(*) FROM big WHERE EXISTS (SELECT 1 FROM dim WHERE dim.k = big.k AND c < 4);
-- anti join
SELECT count(*) FROM big WHERE NOT EXISTS (SELECT 1 FROM dim WHERE dim.k = big.k);
-- not in with null
SELECT id FROM ship WHERE id NOT IN (SELECT id FROM ban);
-- not in without null
SELECT id FROM ship WHERE id NOT IN (SELECT id FROM ban WHERE id IS NOT NULL);
-- not in of nothing
SELECT id FROM ship WHERE id NOT IN (SELECT id FROM ban WHERE id > 100);
-- in as a column
SELECT id, id IN (SELECT id FROM ban) AS hit FROM ship;
-- in as a column of many
SELECT k, (g IN (SELECT k FROM dim)) AS hit, count(*) FROM big GROUP BY ALL;
-- range join
SELECT count(*) FROM dim a JOIN dim b ON a.k < b.k AND a.c <> b.c;
-- cross product
SELECT count(*), sum(ship.id * dim.c) FROM ship, dim;
-- join on two keys
SELECT count(*) FROM big a JOIN big b ON a.id = b.id AND a.k = b.k WHERE b.g = 4;
-- join then group by its key
SELECT a.id, count(*) FROM big a JOIN big b ON a.id = b.id GROUP BY a.id HAVING a.id < 50;
-- join chain on one key
SELECT count(*) FROM big a JOIN big b ON a.id = b.id JOIN big c ON b.id = c.id WHERE c.k < 50;
-- join with a limited side
SELECT count(*) FROM (SELECT id FROM big ORDER BY id LIMIT 5) s JOIN big p ON s.id = p.id;
-- join on an expression
SELECT count(*) FROM big JOIN dim ON big.k + 1 = dim.k;
-- scalar subquery
SELECT count(*) FROM big WHERE d > (SELECT avg(d) FROM big);
-- correlated scalar subquery
SELECT count(*) FROM big o WHERE d > (SELECT avg(d) FROM big i WHERE i.k = o.k);
-- correlated exists with inequality
SELECT count(*) FROM big o WHERE EXISTS (SELECT 1 FROM big i WHERE i.k = o.k AND i.id <> o.id AND i.d = o.d);
-- correlated not exists
SELECT n FROM dim WHERE NOT EXISTS (SELECT 1 FROM big WHERE big.k = dim.k AND big.b);
-- correlated count
SELECT n, (SELECT count(*) FROM big WHERE big.k = dim.k) AS c FROM dim;
-- correlated in select with null key
SELECT n, (SELECT max(d) FROM big WHERE big.g = dim.k) AS m FROM dim;
-- any comparison
SELECT id FROM ship WHERE id < ANY (SELECT k FROM dim);
-- all comparison
SELECT id FROM ship WHERE id >= ALL (SELECT id FROM ban);
-- cte read twice
WITH t AS MATERIALIZED (SELECT k, sum(d) AS s FROM big GROUP BY k) SELECT count(*) FROM t a JOIN t b ON a.s = b.s WHERE a.k <= b.k;
-- cte and its maximum
WITH t AS (SELECT k, sum(d) AS s FROM big GROUP BY k) SELECT k FROM t WHERE s = (SELECT max(s) FROM t);
-- cte never read
WITH t AS MATERIALIZED (SELECT * FROM big) SELECT count(*) FROM dim;
-- nested ctes
WITH a AS MATERIALIZED (SELECT k, count(*) AS n FROM big GROUP BY k), b AS MATERIALIZED (SELECT * FROM a WHERE n > 60) SELECT count(*), (SELECT sum(n) FROM a) FROM b JOIN a USING (k);
-- union all
SELECT count(*), sum(k) FROM (SELECT k FROM big UNION ALL SELECT k FROM dim);
-- union all with a single side
SELECT count(*), sum(x) FROM (SELECT id AS x FROM big UNION ALL SELECT max(k) FROM dim UNION ALL SELECT 7);
-- union
SELECT k FROM big UNION SELECT k FROM dim;
-- except
SELECT k::BIGINT FROM big EXCEPT SELECT k FROM dim;
-- except all
SELECT g FROM big EXCEPT ALL SELECT k FROM dim;
-- intersect
SELECT g FROM big INTERSECT SELECT k FROM dim;
-- ordered
SELECT id, d FROM big ORDER BY d DESC, id LIMIT 20;
-- ordered with offset
SELECT id FROM big ORDER BY id LIMIT 7 OFFSET 5000;
-- ordered all
SELECT k, id FROM big ORDER BY k, id DESC;
-- ordered groups
SELECT k, count(*) AS n FROM big GROUP BY k ORDER BY n DESC, k LIMIT 5;
-- limit counts
SELECT count(*) FROM (SELECT * FROM big LIMIT 321);
-- limit of a limit
WITH s AS (SELECT * FROM big LIMIT 1) SELECT 1 FROM s ORDER BY day LIMIT 1000;
-- limit with offset counts
SELECT count(*) FROM (SELECT * FROM big LIMIT 10000 OFFSET 6000);
-- window by key
SELECT id, row_number() OVER (PARTITION BY k ORDER BY id), sum(d) OVER (PARTITION BY k) FROM big;
-- windows with a common key
SELECT id, rank() OVER (PARTITION BY k, g ORDER BY id), count(*) OVER (PARTITION BY k) FROM big;
-- window over all
SELECT id, row_number() OVER (ORDER BY id), count(*) OVER () FROM big;
-- qualify
SELECT k, id FROM big QUALIFY row_number() OVER (PARTITION BY k ORDER BY id DESC) = 1;
-- unnest
SELECT k, count(*) FROM (SELECT k, unnest([1, 2, 3]) AS u FROM big) GROUP BY k;
-- values joined
SELECT v.a, count(*) FROM (VALUES (1), (2), (NULL)) v(a) LEFT JOIN big ON big.k = v.a GROUP BY v.a;
-- constants only
SELECT 42, 'x';
-- nan and zero
SELECT f, count(*) FROM big WHERE id > 5990 GROUP BY f;
-- self join on doubles
SELECT count(*) FROM big a JOIN big b ON a.f = b.f WHERE a.id > 5990;
-- asof join
SELECT count(*), sum(b.id) FROM dim a ASOF JOIN big b ON a.k >= b.id;
-- positional join
SELECT count(*), count(s.id) FROM ship s POSITIONAL JOIN dim;
-- asof join with a key
SELECT count(*) FROM big a ASOF JOIN dim b ON a.k = b.k AND a.id >= b.c;
-- volatile
SELECT count(*) FROM (SELECT random() AS x, k FROM big) WHERE x >= 0;
-- decimals
SELECT k, sum(d * (1 - d * 0.0001)), avg(d * 2) FROM big GROUP BY k;
-- wide group by
SELECT k, g, s, day, count(*) FROM big GROUP BY ALL;
-- case folded join
SELECT count(*) FROM dim a JOIN dim b ON lower(a.n) = lower(b.n);
-- empty build side in some partitions
SELECT a.k, b.n FROM big a JOIN dim b ON a.k = b.k WHERE b.n = 'never';
-- structs and lists
SELECT s, list_sort(list(DISTINCT k)) FROM big WHERE id < 300 GROUP BY s;
-- struct keys
SELECT p, count(*) FROM (SELECT {'a': k, 'b': g} AS p FROM big) GROUP BY p;
