"""Validates lists of components against the schema of CycloneDX. Usage: sbom.py FILE…"""

import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

validator = JsonStrictValidator(SchemaVersion.V1_6)
for path in sys.argv[1:]:
    with open(path) as file:
        wrong = validator.validate_str(file.read())
    if wrong:
        sys.exit(f"{path}: {wrong}")
    print(f"{path}: valid")
