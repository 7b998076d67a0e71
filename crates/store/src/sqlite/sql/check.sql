-- What must hold in every file, whatever was done to it: each statement gives what breaks the rule in its first line, as
-- a tenant and a name. The whole of each table is read.

--- an item is in no segment
SELECT i.tenant, i.id FROM item i
WHERE NOT EXISTS (SELECT 1 FROM segment s WHERE s.tenant = i.tenant AND s.segment = i.segment);

--- a segment continues one that is not there
SELECT s.tenant, s.segment FROM segment s WHERE s.parent IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM segment p WHERE p.tenant = s.tenant AND p.segment = s.parent);

--- a segment begins after the end of the one that it continues
SELECT s.tenant, s.segment FROM segment s JOIN segment p ON p.tenant = s.tenant AND p.segment = s.parent
WHERE s.start > coalesce((SELECT max(i.pos) + 1 FROM item i WHERE i.tenant = p.tenant AND i.segment = p.segment), p.start);

--- a segment has a gap between its items
SELECT s.tenant, s.segment FROM segment s JOIN item i ON i.tenant = s.tenant AND i.segment = s.segment
GROUP BY s.tenant, s.segment HAVING min(i.pos) <> s.start OR max(i.pos) - min(i.pos) + 1 <> count(*);

--- a response is in no segment
SELECT r.tenant, r.id FROM response r WHERE r.gone = 0
AND NOT EXISTS (SELECT 1 FROM segment s WHERE s.tenant = r.tenant AND s.segment = r.segment);

--- a response has places that do not fit each other
SELECT tenant, id FROM response WHERE gone = 0 AND NOT (0 <= own AND own <= middle AND middle <= upto);

--- a response ends after its segment
SELECT r.tenant, r.id FROM response r JOIN segment s ON s.tenant = r.tenant AND s.segment = r.segment WHERE r.gone = 0
AND r.upto > coalesce((SELECT max(i.pos) + 1 FROM item i WHERE i.tenant = s.tenant AND i.segment = s.segment), s.start);

--- a response, or its settings, or a conversation is empty
SELECT tenant, id FROM response WHERE gone = 0 AND length(head) = 0
UNION ALL SELECT r.tenant, r.id FROM settings s JOIN response r ON r.tenant = s.tenant AND r.settings = s.hash
WHERE length(s.body) = 0
UNION ALL SELECT tenant, id FROM conversation WHERE length(metadata) = 0;

--- a response is without its settings
SELECT r.tenant, r.id FROM response r WHERE r.gone = 0 AND r.settings IS NOT NULL
AND NOT EXISTS (SELECT 1 FROM settings s WHERE s.tenant = r.tenant AND s.hash = r.settings);

--- a conversation is in no segment, or ends after it
SELECT c.tenant, c.id FROM conversation c LEFT JOIN segment s ON s.tenant = c.tenant AND s.segment = c.segment
WHERE s.segment IS NULL
OR c.upto > coalesce((SELECT max(i.pos) + 1 FROM item i WHERE i.tenant = s.tenant AND i.segment = s.segment), s.start);

--- an event log has a gap
SELECT tenant, response FROM (SELECT tenant, response, next, lead(first) OVER (PARTITION BY tenant, response ORDER BY first)
AS following FROM event) WHERE following <> next GROUP BY tenant, response;

--- an event log is of no response
SELECT e.tenant, e.response FROM event e
WHERE NOT EXISTS (SELECT 1 FROM response r WHERE r.tenant = e.tenant AND r.id = e.response)
GROUP BY e.tenant, e.response;

--- a job is of no response
SELECT j.tenant, j.response FROM job j
WHERE NOT EXISTS (SELECT 1 FROM response r WHERE r.tenant = j.tenant AND r.id = j.response AND r.gone = 0);
