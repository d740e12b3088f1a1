"""`make fuzz`: thousands of requests made by schemathesis from the API's own schema, against a portal with one of
everything, by everyone who may come. The test is `tests/integration/api/test_api_survives_anything.py`; here is what
its requests are made of. Not here: who may do what (`tests/integration/security`).
"""
