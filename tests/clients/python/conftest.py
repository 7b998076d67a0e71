"""The official client, pointed at the running godex that GODEX_URL names."""

import os

import pytest
from openai import OpenAI


@pytest.fixture
def client() -> OpenAI:
    # No retries: a test wants to see the first answer.
    return OpenAI(base_url=os.environ["GODEX_URL"] + "/v1", api_key="unused", max_retries=0, timeout=30)
