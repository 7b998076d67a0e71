"""`/metrics`, read by the parsers of Prometheus' own library: of its own format, and of OpenMetrics, which is strict."""

import os
import time
import urllib.request

from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families as plain

URL = os.environ["GODEX_URL"] + "/metrics"


def scrape(accept):
    request = urllib.request.Request(URL, headers={"accept": accept})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return answer.headers["content-type"], answer.read().decode()


def total(families, name, **labels):
    samples = (sample for family in families for sample in family.samples if sample.name == name)
    return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())


def test_both_formats_say_the_same(client):
    def counted():
        kind, text = scrape("text/plain")
        assert kind == "text/plain; version=0.0.4; charset=utf-8"
        return list(plain(text))

    def responses(families):
        return total(families, "godex_requests_total", route="/v1/responses", outcome="completed")

    before = responses(counted())
    client.responses.create(model="demo", input="Hi")
    list(client.responses.create(model="demo", input="Hi", stream=True))
    for _ in range(200):
        families = counted()
        if responses(families) >= before + 2:
            break
        time.sleep(0.05)
    assert responses(families) >= before + 2
    kind, text = scrape("application/openmetrics-text; version=1.0.0")
    assert kind == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    strict = list(open_metrics(text))
    assert {family.name for family in strict} == {family.name for family in families}
    assert {family.name: family.type for family in strict} == {family.name: family.type for family in families}
    assert total(strict, "godex_tokens_total", provider="demo", kind="output") > 0
    assert total(strict, "godex_build_info") == 1
