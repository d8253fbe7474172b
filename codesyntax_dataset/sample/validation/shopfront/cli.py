"""The shop's command line."""

import argparse
import datetime
import logging
import sys

from shopfront.orders import OrderError, best_sellers, load_orders, reminder


def build_parser():
    """Define the commands and their options."""
    parser = argparse.ArgumentParser(prog="shopfront", description="Look after the orders of a small shop.")
    parser.add_argument("file", help="orders, as a delimited file")
    parser.add_argument("-d", "--delimiter", default=";", help="what separates columns (default: %(default)s)")
    parser.add_argument("-v", "--verbose", action="count", default=0, help="say more; give twice for even more")
    commands = parser.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show", help="print an order")
    show.add_argument("number")
    top = commands.add_parser("top", help="print the best selling articles")
    top.add_argument("-n", type=int, default=5, help="how many (default: %(default)s)")
    remind = commands.add_parser("remind", help="print the reminders that are due")
    remind.add_argument("--today", type=datetime.date.fromisoformat, default=None, metavar="DATE")
    return parser


def print_order(order, out=sys.stdout):
    """Print the items of an order as a table, with its sum."""
    width = max([len(item["article"]) for item in order.items] + [len("total")])
    print("Order", order.number, "for", order.customer, "is", order.state, file=out)
    for item in order.items:
        amount = item["price"] * item["quantity"]
        print("{:>4} {:<{width}} {:>10.2f}".format(item["quantity"], item["article"], amount, width=width), file=out)
    print("     {:<{width}} {:>10}".format("total", order.total(), width=width), file=out)


def configure_logging(verbosity, stream=None):
    """Set the level of the log from the number of -v options."""
    if verbosity == 0:
        level = logging.WARNING
    elif verbosity == 1:
        level = logging.INFO
    else:
        level = logging.DEBUG
    logging.basicConfig(level=level, stream=stream, format="%(levelname)s %(name)s: %(message)s")


def main(argv=None):
    """Run a command and return its exit status: 0 if all went well, 1 otherwise."""
    args = build_parser().parse_args(argv)
    configure_logging(args.verbose, stream=sys.stderr)
    try:
        orders = load_orders(args.file, delimiter=args.delimiter)
        for order in orders.values():
            order.advance()
        if args.command == "show":
            print_order(orders[args.number])
        elif args.command == "top":
            for article, quantity in best_sellers(orders.values(), limit=args.n):
                print("%6d  %s" % (quantity, article))
        else:
            today = args.today or datetime.date.today()
            for text in filter(None, (reminder(order, today) for order in orders.values())):
                print(text, end="\n\n")
    except KeyError:
        print("no order %s in %s" % (args.number, args.file), file=sys.stderr)
        return 1
    except (OrderError, OSError) as error:
        print("shopfront: %s" % error, file=sys.stderr)
        return 1
    return 0
