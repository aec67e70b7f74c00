"""fliprank's own tables, which its pages show: `fliprank reproduce fliprank`. They are run only by name."""

from fliprank.papers.own import direct, engines, fusion, fusion_calibration, hybrid, mq2008, tuning, verdicts

__all__ = ["direct", "engines", "fusion", "fusion_calibration", "hybrid", "mq2008", "tuning", "verdicts"]
