-- For the memory backend only: what was used last, and how many responses there are. When it is full, the oldest go, but
-- none that is still being made.
CREATE INDEX response_used ON response (used) WHERE gone = 0 AND status > 1;
CREATE INDEX conversation_used ON conversation (used);

CREATE TABLE live (responses INTEGER NOT NULL) STRICT;
INSERT INTO live VALUES (0);
CREATE TRIGGER live_more AFTER INSERT ON response
    BEGIN UPDATE live SET responses = responses + 1; END;
CREATE TRIGGER live_less AFTER UPDATE OF gone ON response WHEN old.gone = 0 AND new.gone <> 0
    BEGIN UPDATE live SET responses = responses - 1; END;
-- An erasure takes them away without a trace.
CREATE TRIGGER live_erased AFTER DELETE ON response WHEN old.gone = 0
    BEGIN UPDATE live SET responses = responses - 1; END;
