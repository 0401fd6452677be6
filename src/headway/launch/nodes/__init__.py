"""Several nodes in one run: links between supervisors come in; seats on all of them and one verdict go out.

`rendezvous` says where the leader is, `link` proves who is at the other end, `leader` decides and `follower` carries
out. The reasons are in decision 0071.
"""
