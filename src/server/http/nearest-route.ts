/** Names the route that a misspelt path most likely means. */
import { nearestTo } from '../../core/base/nearest.ts'

/** @param routes paths as routed, such as `/api/cards/:id`. @returns such as `/api/cards/{id}`; null: none is near. */
export function nearestRoute(path: string, routes: Iterable<string>): string | null {
  const given = path.split('/')
  // A parameter takes whatever stands in its place.
  const filled = new Map<string, string>()
  for (const route of routes) {
    const segments = route.split('/')
    if (segments.length !== given.length) continue
    const like = segments.map((segment, at) => (segment.startsWith(':') ? given[at] : segment)).join('/')
    if (!filled.has(like)) filled.set(like, route)
  }
  const nearest = nearestTo(path.slice(0, 200), filled.keys())
  const route = nearest === null ? undefined : filled.get(nearest)
  return route === undefined || nearest === path ? null : route.replaceAll(/:(\w+)/g, '{$1}')
}
