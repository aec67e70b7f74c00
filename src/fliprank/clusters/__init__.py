"""Search clusters that others run, read only: their answers, their term statistics, over the official clients.

access.py           where a cluster is, and who asks: secrets come from the environment and are told to nobody
calls.py            calls that are tried again when a cluster is busy, and errors that say what to do
cluster.py          what is asked of any cluster
elasticsearch.py    Elasticsearch and OpenSearch, which speak almost the same
pull.py, kept.py    rows to tune on, in batches; what was fetched is kept, so that a broken-off pull goes on
template.py         a query template of the user's own
"""
