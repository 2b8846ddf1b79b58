# SPDX-License-Identifier: Apache-2.0
"""Which domains add up to the machine: the rule of user/model/schema.h, written a second time."""
import re


def kind(domain):
    return re.sub(r"-\d.*", "", domain)


def summed(domains):
    """Names of those that are added up; none of them holds another."""
    kinds = {kind(d) for d in domains}
    for lead, group in (({"package"}, {"package", "dram", "gpu"}), ({"psys"}, {"psys"}), ({"core", "uncore"}, {"core", "uncore", "dram", "gpu"}),
                        ({"external"}, {"external"}), ({"dram", "gpu"}, {"dram", "gpu"})):
        if kinds & lead:
            return [d for d in domains if kind(d) in group]
    return []
