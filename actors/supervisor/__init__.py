"""The supervisor: starts and watches actors, replaces lost ones, and restores their state.

It is no actor: it runs in the driver. An actor is lost if its process ended or does not answer; its
replacement is a new incarnation with a higher epoch, and other actors refuse messages of earlier
epochs (they are fenced).
"""
