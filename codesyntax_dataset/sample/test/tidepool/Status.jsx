import { useEffect, useState } from "react";

/** How long ago something was, in words. */
export function ago(then, now = Date.now()) {
  const seconds = Math.round((now - then) / 1000);
  if (seconds < 60) return "just now";
  const units = [[86400, "day"], [3600, "hour"], [60, "minute"]];
  for (const [size, name] of units) {
    const count = Math.floor(seconds / size);
    if (count >= 1) return count === 1 ? `a ${name} ago` : `${count} ${name}s ago`;
  }
}

function Badge({ status, children }) {
  const colour = status === "up" ? "green" : "red";
  return <span className={`badge ${colour}`}>{children}</span>;
}

export default function StatusList({ url, every = 5000 }) {
  const [servers, setServers] = useState([]);
  const [error, setError] = useState(null);

  useEffect(() => {
    let stopped = false;
    const load = async () => {
      try {
        const answer = await fetch(url);
        if (!stopped) setServers(await answer.json());
      } catch (problem) {
        setError(problem.message);
      }
    };
    load();
    const timer = setInterval(load, every);
    return () => {
      stopped = true;
      clearInterval(timer);
    };
  }, [url, every]);

  if (error) return <p role="alert">Cannot read the status: {error}</p>;
  return (
    <ul>
      {servers.map((server) => (
        <li key={server.name}>
          <Badge status={server.status}>{server.name}</Badge> seen {ago(server.seen)}
        </li>
      ))}
    </ul>
  );
}
