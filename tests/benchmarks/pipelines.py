"""Pipelines of any size, made of what pipelines are made of, for measuring and for testing checks."""

from __future__ import annotations

from typing import Any

import yaml

Sections = dict[str, dict[str, Any]]


def generate(nodes: int) -> str:
    """A valid streaming pipeline with exactly so many nodes, as the text of its file.

    Lanes of Kafka topics that are parsed, filtered, joined with a static table, aggregated over time
    and written to Delta alternate with lanes of Delta tables that are cleaned and put together. What
    is left over is filters.

    Args:
        nodes: How many; at least 2.
    """
    if nodes < 2:
        raise ValueError("a pipeline has at least a source and a target")
    sections: Sections = {"sources": {}, "transforms": {}, "targets": {}}
    lane = 0
    while True:
        section = _clicks if lane % 2 == 0 else _orders
        longer = section(lane)
        if _size(sections) + _size(longer) > nodes - 2:
            break
        for name, added in longer.items():
            sections[name].update(added)
        lane += 1
    _filters(sections, nodes - _size(sections))
    head = {
        "pipeline": "generated",
        "version": "1.4.0",
        "description": f"{nodes} nodes.",
        "parameters": {"brokers": ["localhost:9092"], "topic": "clicks", "least": 0},
        "profiles": {"prod": {"brokers": ["b1:9092", "b2:9092"]}},
        "spark": {"spark.sql.shuffle.partitions": 8},
    }
    return yaml.safe_dump({**head, **sections}, sort_keys=False, width=100)


def _size(sections: Sections) -> int:
    return sum(map(len, sections.values()))


def _clicks(lane: int) -> Sections:
    """Ten nodes: clicks per team and minute."""
    return {
        "sources": {
            f"clicks_{lane}": {
                "gem": "kafka",
                "options": {
                    "bootstrap_servers": "${brokers}",
                    "subscribe": [f"${{topic}}_{lane}"],
                    "starting_offsets": "earliest",
                    "max_offsets_per_trigger": 10_000,
                },
            },
            f"pages_{lane}": {
                "gem": "file",
                "mode": "batch",
                "options": {"format": "csv", "path": "data/pages", "schema": "page string, team string"},
            },
        },
        "transforms": {
            f"parsed_{lane}": {
                "gem": "from_json",
                "input": f"clicks_{lane}",
                "options": {"column": "value", "schema": "page string, at timestamp, amount double"},
            },
            f"valid_{lane}": {
                "gem": "filter",
                "input": f"parsed_{lane}",
                "options": {"condition": "page is not null and amount >= ${least}"},
            },
            f"timely_{lane}": {
                "gem": "watermark",
                "input": f"valid_{lane}",
                "options": {"column": "at", "delay": "10 minutes"},
            },
            f"named_{lane}": {
                "gem": "join",
                "inputs": [f"timely_{lane}", f"pages_{lane}"],
                "options": {"how": "left", "on": ["page"]},
            },
            f"priced_{lane}": {
                "gem": "with_columns",
                "input": f"named_{lane}",
                "options": {
                    "columns": {"cents": "cast(amount * 100 as bigint)", "team": "coalesce(team, '?')"}
                },
            },
            f"counts_{lane}": {
                "gem": "aggregate",
                "input": f"priced_{lane}",
                "options": {
                    "window": {"column": "at", "duration": "1 minute"},
                    "group_by": ["team"],
                    "aggregates": {"clicks": "count(*)", "cents": "sum(cents)"},
                },
            },
            f"shaped_{lane}": {
                "gem": "select",
                "input": f"counts_{lane}",
                "options": {"columns": ["window.start as minute", "team", "clicks", "cents / 100 as amount"]},
            },
        },
        "targets": {
            f"table_{lane}": {
                "gem": "delta",
                "input": f"shaped_{lane}",
                "output_mode": "append",
                "trigger": {"processing_time": "10 seconds"},
                "options": {"path": f"out/clicks_{lane}"},
            }
        },
    }


def _orders(lane: int) -> Sections:
    """Eight nodes: two tables of orders, cleaned and put together."""
    limits = {"max_files_per_trigger": 10, "skip_change_commits": True}
    return {
        "sources": {
            f"orders_{lane}": {"gem": "delta", "options": {"path": "data/orders", **limits}},
            f"returns_{lane}": {"gem": "delta", "options": {"path": "data/returns", **limits}},
        },
        "transforms": {
            f"renamed_{lane}": {
                "gem": "rename",
                "input": f"returns_{lane}",
                "options": {"columns": {"note": "reason"}},
            },
            f"dropped_{lane}": {
                "gem": "drop",
                "input": f"orders_{lane}",
                "options": {"columns": ["note"]},
            },
            f"all_{lane}": {
                "gem": "union",
                "inputs": [f"dropped_{lane}", f"renamed_{lane}"],
                "options": {"allow_missing_columns": True},
            },
            f"dated_{lane}": {
                "gem": "watermark",
                "input": f"all_{lane}",
                "options": {"column": "at", "delay": "1 hour"},
            },
            f"once_{lane}": {
                "gem": "deduplicate",
                "input": f"dated_{lane}",
                "options": {"columns": ["id"], "within_watermark": True},
            },
        },
        "targets": {
            f"orders_once_{lane}": {
                "gem": "delta",
                "input": f"once_{lane}",
                "trigger": {"available_now": True},
                "options": {"path": f"out/orders_{lane}", "merge_schema": True},
            }
        },
    }


def _filters(sections: Sections, nodes: int) -> None:
    """A source, filters, and a target: so many nodes."""
    sections["sources"]["ticks"] = {"gem": "rate", "options": {"rows_per_second": 10}}
    last = "ticks"
    for number in range(nodes - 2):
        name = f"more_{number}"
        sections["transforms"][name] = {
            "gem": "filter",
            "input": last,
            "options": {"condition": f"value % {number + 2} > 0"},
        }
        last = name
    sections["targets"]["screen"] = {"gem": "console", "input": last}
