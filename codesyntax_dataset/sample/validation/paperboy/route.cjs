// The round of a paper boy: which houses, in which order

const distance = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);

function nearest(from, houses) {
  let best = null;
  houses.forEach(function (house) {
    if (!best || distance(from, house) < distance(from, best)) best = house;
  });
  return best;
}

// A round that always goes to the nearest house that is left
function round(start, houses) {
  const left = new Set(houses);
  const order = [start];
  while (left.size) {
    const next = nearest(order[order.length - 1], left);
    left.delete(next);
    order.push(next);
  }
  return order;
}

// Turns parts of a round around as long as that makes it shorter
function untangle(order) {
  const length = (i, j) => distance(order[i], order[j]);
  let better;
  do {
    better = false;
    for (let i = 1; i < order.length - 2; i++) {
      for (let j = i + 1; j < order.length - 1; j++) {
        const gain = length(i - 1, i) + length(j, j + 1) - length(i - 1, j) - length(i, j + 1);
        if (gain > 1e-9) {
          order = [...order.slice(0, i), ...order.slice(i, j + 1).reverse(), ...order.slice(j + 1)];
          better = true;
        }
      }
    }
  } while (better);
  return order;
}

exports.describe = function (order, names) {
  return order.map((house) => (names[house.id] ? names[house.id] : "house " + house.id)).join(", ");
};

exports.nearest = nearest;
exports.round = round;
exports.untangle = untangle;
