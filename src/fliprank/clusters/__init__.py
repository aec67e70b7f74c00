"""Search clusters that others run, read only: their answers, their term statistics, over the official clients.

access.py              where a cluster is, and who asks: secrets come from the environment and are told to nobody
logs.py                nor to the logs of clients
calls.py               calls that are tried again when a cluster is busy, and errors that say what to do
cluster.py             what is asked of any cluster
elasticsearch.py       Elasticsearch and OpenSearch, which speak almost the same
solr.py                Solr: counts from the explanations of its scores
vespa.py               Vespa: counts from a rank profile's features; bm25_settings.py reads k1 and b off its scores
pull.py                rows to tune on
gather.py, counts.py   counts of terms, in batches; by document or by term, they come to the same
kept.py                what was fetched is kept, so that a broken-off pull goes on
template.py            a query template of the user's own
task.py                the rows as a task to tune on
"""
