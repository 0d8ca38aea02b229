"""What `gem-bundle new` writes: projects, and distributions with a gem.

The files are templates, in the folder `templates`. In them, and in their names, ``@{name}`` stands for what
`gem_bundle.scaffold.names` makes of the name that the user has typed.
"""

from gem_bundle.scaffold.folders import write as write
from gem_bundle.scaffold.names import GemNames as GemNames
from gem_bundle.scaffold.names import ProjectNames as ProjectNames
from gem_bundle.scaffold.names import gem_names as gem_names
from gem_bundle.scaffold.names import project_names as project_names
from gem_bundle.scaffold.taken import check_free as check_free
from gem_bundle.scaffold.trees import Tree as Tree
from gem_bundle.scaffold.trees import gem_tree as gem_tree
from gem_bundle.scaffold.trees import project_tree as project_tree
