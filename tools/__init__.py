"""Scripts of developers: releases, documents and counts. Nothing here is part of the wheel."""
