"""Orders of a small shop."""

import csv
import datetime
import logging
from decimal import ROUND_HALF_UP, Decimal

logger = logging.getLogger(__name__)

VAT = {"standard": Decimal("0.19"), "reduced": Decimal("0.07"), "none": Decimal("0")}


class OrderError(Exception):
    """Something about an order is not in order."""


class Order:
    """What a customer wants, and what has become of it."""

    def __init__(self, number, customer, date=None):
        """Begin an order without items.

        Args:
            number: Unique among all orders.
            customer: Mail address.
            date: Day of the order; today if None.
        """
        self.number = number
        self.customer = customer
        self.date = date or datetime.date.today()
        self.items = []
        self.state = "open"
        self.paid = Decimal(0)

    def add(self, article, price, quantity=1, vat="standard"):
        """Put an article into the order.

        More of an article that is there already at the same price raises its quantity.
        """
        if self.state != "open":
            raise OrderError("order %s is %s" % (self.number, self.state))
        if quantity < 1 or vat not in VAT:
            raise OrderError("cannot add %r of %s with VAT %s" % (quantity, article, vat))
        price = Decimal(price)
        for item in self.items:
            if item["article"] == article and item["price"] == price:
                item["quantity"] += quantity
                break
        else:
            self.items.append({"article": article, "price": price, "quantity": quantity, "vat": vat})
        logger.debug("order %s: %d x %s", self.number, quantity, article)

    def net(self):
        """Sum of all items before discount and tax."""
        return sum((item["price"] * item["quantity"] for item in self.items), Decimal(0))

    def discount(self, regular=False):
        """Share of the price that the customer saves.

        Regular customers save 5 % and large orders 10 %; there is no more than that.
        """
        net = self.net()
        if net >= 500:
            rate = Decimal("0.10")
        elif regular:
            rate = Decimal("0.05")
        else:
            rate = Decimal(0)
        return rate

    def total(self, regular=False):
        """Amount to be paid, tax included, in whole cents."""
        factor = 1 - self.discount(regular=regular)
        gross = Decimal(0)
        for item in self.items:
            price = item["price"] * item["quantity"] * factor
            gross += price * (1 + VAT[item["vat"]])
        return gross.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)

    def pay(self, amount, regular=False):
        """Book a payment and return what is still missing; negative if it was too much."""
        if amount <= 0:
            raise OrderError("a payment must be positive, got %s" % amount)
        self.paid += amount
        missing = self.total(regular=regular) - self.paid
        if missing > 0:
            logger.info("order %s: %s still missing", self.number, missing)
        else:
            self.state = "paid"
        return missing

    def advance(self):
        """Move the order on to its next state and return that."""
        if self.state == "open" and not self.items:
            raise OrderError("order %s is empty" % self.number)
        if self.state == "open":
            self.state = "ordered"
        elif self.state == "paid":
            self.state = "shipped"
        elif self.state == "shipped":
            self.state = "done"
        else:
            reason = "has to be paid first" if self.state == "ordered" else "is %s already" % self.state
            raise OrderError("order %s %s" % (self.number, reason))
        return self.state


def load_orders(path, delimiter=";"):
    """Read orders from a file with a line per item.

    Args:
        path: File with the columns order, customer, date, article, price, quantity.
        delimiter: Separates the columns.

    Returns:
        Dict from order number to Order; lines that make no sense are logged and skipped.
    """
    orders = {}
    with open(path, newline="", encoding="utf-8") as stream:
        for row in csv.DictReader(stream, delimiter=delimiter):
            number = row["order"]
            try:
                date = datetime.datetime.strptime(row["date"], "%Y-%m-%d").date()
                price = Decimal(row["price"].replace(",", "."))
                quantity = int(row["quantity"] or 1)
            except (ArithmeticError, ValueError) as error:
                logger.warning("%s: order %s skipped: %s", path, number, error)
            else:
                order = orders.setdefault(number, Order(number, row["customer"], date=date))
                order.add(row["article"], price, quantity=quantity)
    return orders


def reminder(order, today, grace=14):
    """Word a reminder, depending on how long an order has not been paid.

    Args:
        order: The order; it must be in the state `ordered`.
        today: The present date.
        grace: Days for which there is no reminder.

    Returns:
        The text; None if no reminder is due.
    """
    days = (today - order.date).days
    if order.state != "ordered" or days <= grace:
        return None
    missing = order.total() - order.paid
    greeting = "Dear customer,\n\n"
    if days <= 2 * grace:
        text = "may we remind you of order {number} of {date:%d %B}? {missing} are still to be paid."
    elif days <= 3 * grace:
        text = "order {number} of {date:%d %B} is {days} days old. Please pay {missing} within a week."
    else:
        text = "we have cancelled your order {number}."
        order.state = "cancelled"
    return greeting + text.format(number=order.number, date=order.date, missing=missing, days=days)


def best_sellers(orders, limit=5):
    """Rank articles by the number sold, ties by name.

    Args:
        orders: Iterable of Order; open and cancelled ones do not count.
        limit: Number of articles.

    Returns:
        List of (article, quantity).
    """
    sold = {}
    for order in orders:
        if order.state in ("open", "cancelled"):
            continue
        for item in order.items:
            sold[item["article"]] = sold.get(item["article"], 0) + item["quantity"]
    ranking = sorted(sold.items(), key=lambda pair: (-pair[1], pair[0]))
    return ranking[:limit]
