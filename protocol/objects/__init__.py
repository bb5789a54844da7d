"""Models of the API objects that scheduling looks at."""

from roadstead.protocol.objects.selectors import (
    LabelSelector as LabelSelector,
)
from roadstead.protocol.objects.selectors import (
    NodeSelector as NodeSelector,
)
from roadstead.protocol.objects.selectors import (
    NodeSelectorTerm as NodeSelectorTerm,
)
from roadstead.protocol.objects.selectors import (
    PreferredSchedulingTerm as PreferredSchedulingTerm,
)
from roadstead.protocol.objects.selectors import (
    SelectorRequirement as SelectorRequirement,
)
