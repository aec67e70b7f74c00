"""fliprank's own tables, which its pages show: `fliprank reproduce fliprank`. They are run only by name."""

from fliprank.papers.own import direct, mq2008, tuning, verdicts

__all__ = ["direct", "mq2008", "tuning", "verdicts"]
