"""LangChain, LlamaIndex and Haystack themselves fuse the lists: the same scores, or where there are none, the order."""

from __future__ import annotations

from itertools import pairwise

import pytest
from haystack import Document as HaystackDocument
from haystack.components.joiners import DocumentJoiner
from langchain_classic.retrievers import EnsembleRetriever
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from llama_index.core.llms import MockLLM
from llama_index.core.retrievers import BaseRetriever, QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
from real_lists import lists_of, names, ours, same

import fliprank as fr

SOURCES = pytest.mark.parametrize("source", ["random", "real"])


@SOURCES
@pytest.mark.parametrize("c", [60, 3])
def test_langchain_orders_documents_as_we_do(source: str, c: int) -> None:
    lists, weights = lists_of(source, 3), [0.5, 0.2, 0.3]
    mine = ours(lists, fr.Fusion("langchain", names(3)).at([*weights, c]))
    for query, each in lists.items():
        retrievers = [RunnableLambda(lambda _, x=x: [Document(page_content=doc) for doc, _ in x]) for x in each]
        found = EnsembleRetriever(retrievers=retrievers, weights=weights, c=c).invoke("query")
        scores = [mine[query][doc.page_content] for doc in found]
        assert {doc.page_content for doc in found} == mine[query].keys()
        assert all(a >= b - 1e-15 for a, b in pairwise(scores)), query


class Given(BaseRetriever):
    """Retrieves a list that is known already."""

    def __init__(self, found: list[tuple[str, float]]) -> None:
        self.found = found
        super().__init__()

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=doc, id_=doc), score=score) for doc, score in self.found]


@SOURCES
@pytest.mark.parametrize("method", ["reciprocal_rerank", "relative_score", "dist_based_score"])
def test_llamaindex_gives_the_same_scores(source: str, method: str) -> None:
    lists, weights = lists_of(source, 3), [0.5, 0.2, 0.3]
    model = fr.Fusion("llamaindex", names(3), method=method)
    mine = ours(lists, model.at(weights) if len(model.params) else model)
    for query, each in lists.items():
        retriever = QueryFusionRetriever(
            [Given(x) for x in each], llm=MockLLM(), mode=method, similarity_top_k=1000, num_queries=1, use_async=False,
            retriever_weights=weights,
        )  # fmt: skip
        theirs = {node.node.node_id: float(node.score or 0.0) for node in retriever.retrieve("query")}
        same(mine[query], theirs)


@SOURCES
@pytest.mark.parametrize("method", ["reciprocal_rank_fusion", "merge", "distribution_based_rank_fusion"])
def test_haystack_gives_the_same_scores(source: str, method: str) -> None:
    lists, weights = lists_of(source, 3), [0.5, 0.2, 0.3]
    model = fr.Fusion("haystack", names(3), method=method)
    mine = ours(lists, model.at(weights) if len(model.params) else model)
    for query, each in lists.items():
        documents = [[HaystackDocument(id=doc, content=doc, score=score) for doc, score in x] for x in each]
        joiner = DocumentJoiner(join_mode=method, weights=weights if len(model.params) else None)
        theirs = {doc.id: float(doc.score) for doc in joiner.run(documents=documents)["documents"]}
        same(mine[query], theirs)
