"""Queries over the tables `a` (value, n, x), `b` (name, m, y) and `s` (name, k) that stand for several."""

IN_STEPS = [
    "select n, m, k from a join b on a.value = b.name join s on a.n = s.k where x > 1",
    "select * from a join b on a.value = b.name left join s on n = k",
    "select a.*, s.k + 1 from a join b on a.value = b.name join s on n = k order by n",
    "select n, count(*) as c, sum(m) from a join b on a.value = b.name where n = m group by n having sum(m) > 1",
    "select n, m, k from a, s, b where a.value = b.name and b.m = s.k",
    "select n, m, k from a cross join s join b on a.value = b.name and (m > 1 or k > 1)",
    "with j as (select n, m, value as v from a join b on a.value = b.name) select v, k from j join s on j.n = s.k",
    "select t.n, k from (select n, value from a where n > 1) t join b on t.value = b.name join s on b.m = s.k",
    "select a.value from a left semi join b on a.value = b.name join s on n = k",
    "select value, n from a join b on value = name left anti join s on n = k where m > 0",
    "select name, n, k from b join s using (name) join a on a.n = b.m",
    "select distinct b.name as called, s.name from a join b on a.value = b.name right join s on b.m = s.k",
    "select value, q.m, c from (select value, struct(n, m) as q, x as c from a join b on a.value = b.name where m > 0)",
    "select value, p.c from (select value, struct(count(*) as c, max(n) as n) as p from a group by value)",
]
