"""HTTP extenders, called as kube-scheduler 1.34 calls them.

Each class calls the next:

    Extenders         all extenders of a configuration, in turn
    Extender          the requests to one extender, and the meaning of its replies
    ExtenderCaller    one request as plain JSON data; `HttpCaller`
    Transport         bytes to and from the extender; `SocketTransport`
"""
