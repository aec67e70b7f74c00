"""`python -m fliprank`"""

from fliprank.cli import main

main()
