"""The board: runs of a folder in a browser. In: a folder of runs. Out: pages, all drawn on the server, over loopback.

Only `headway board` imports this package: a web server takes a third of a second that no other command has.
"""

from headway.ui.board.app import make_app
from headway.ui.board.auth import Gate, find_token
from headway.ui.board.serve import Place, offer_addresses, serve_board

__all__ = ["Gate", "Place", "find_token", "make_app", "offer_addresses", "serve_board"]
