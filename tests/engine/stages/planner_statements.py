"""Statements that the planner of stages divides."""

STATEMENTS = (
    "SELECT * FROM facts WHERE id > 5",
    "SELECT count(*) FROM facts",
    "SELECT dim, sum(price), avg(price), avg(weight), count(*), min(word) FROM facts GROUP BY dim",
    "SELECT dim, count(DISTINCT word), sum(DISTINCT other) FROM facts GROUP BY dim",
    "SELECT median(weight) FROM facts",
    "SELECT word, median(weight) FROM facts GROUP BY word",
    "SELECT * FROM facts ORDER BY price LIMIT 3 OFFSET 2",
    "SELECT * FROM facts ORDER BY price",
    "SELECT id FROM facts LIMIT 7",
    "SELECT f.id, label FROM facts f JOIN dims d ON f.dim = d.dim",
    "SELECT f.id, label FROM facts f LEFT JOIN dims d ON f.dim = d.dim AND f.id > 3",
    "SELECT f.id, label FROM facts f RIGHT JOIN dims d ON f.dim = d.dim",
    "SELECT f.id, label FROM facts f FULL JOIN dims d ON f.dim = d.dim",
    "SELECT f.id, amount FROM facts f JOIN more m ON f.id = m.id",
    "SELECT f.id, amount FROM facts f LEFT JOIN more m ON f.id = m.id AND f.other < m.amount",
    "SELECT f.id, amount FROM facts f RIGHT JOIN more m ON f.id + 1 = m.id * 2",
    "SELECT f.id, amount FROM facts f FULL JOIN more m ON f.id = m.id",
    "SELECT id FROM facts f WHERE EXISTS (SELECT 1 FROM more m WHERE m.id = f.id)",
    "SELECT id FROM facts f WHERE NOT EXISTS (SELECT 1 FROM more m WHERE m.id = f.id)",
    "SELECT id FROM facts f WHERE id > 9 OR EXISTS (SELECT 1 FROM more m WHERE m.id = f.id)",
    "SELECT id FROM dims d JOIN facts f ON f.dim = d.dim "
    "WHERE price > (SELECT avg(price) FROM facts)",
    "SELECT id, row_number() OVER (PARTITION BY dim ORDER BY price) FROM facts",
    "SELECT id, sum(price) OVER (ORDER BY day) FROM facts",
    "SELECT id FROM facts UNION ALL SELECT id FROM more UNION ALL SELECT dim FROM dims",
    "SELECT id, dim FROM facts INTERSECT SELECT id, dim FROM more",
    "SELECT id, dim FROM facts EXCEPT SELECT id, dim FROM more",
    "SELECT a.dim, n, m FROM (SELECT dim, count(*) n FROM facts GROUP BY dim) a "
    "JOIN (SELECT dim, sum(amount) m FROM more GROUP BY dim) b ON a.dim = b.dim",
    "SELECT label, sum(amount) FROM facts f JOIN more m ON f.id = m.id JOIN dims d "
    "ON d.dim = m.dim GROUP BY label ORDER BY 2 DESC LIMIT 5",
    "SELECT count(*) FROM facts f JOIN more m ON f.id = m.id",
)  # fmt: skip
