/** The pages of the console. The rail, the tabs and the sheet for more are all made from this list. */
import type { IconName } from './components/icon.tsx'

export interface Route {
  readonly path: string
  readonly name: string
  readonly icon: IconName
  readonly group: 'main' | 'money' | 'settings'
  /** For administrators only. */
  readonly isOperator?: boolean
}

export const routes: readonly Route[] = [
  { path: '/', name: 'Home', icon: 'home', group: 'main' },
  { path: '/approvals', name: 'Approvals', icon: 'approvals', group: 'main' },
  { path: '/agents', name: 'Agents', icon: 'agent', group: 'main' },
  { path: '/activity', name: 'Activity', icon: 'activity', group: 'main' },
  { path: '/accounts', name: 'Accounts', icon: 'bank', group: 'money' },
  { path: '/cards', name: 'Cards', icon: 'card', group: 'money' },
  { path: '/invest', name: 'Invest', icon: 'invest', group: 'money' },
  { path: '/contacts', name: 'Contacts', icon: 'contacts', group: 'money' },
  { path: '/schedules', name: 'Schedules', icon: 'clock', group: 'money' },
  { path: '/people', name: 'People', icon: 'people', group: 'settings' },
  { path: '/compliance', name: 'Compliance', icon: 'person', group: 'settings' },
  { path: '/messages', name: 'Messages', icon: 'bell', group: 'settings' },
  { path: '/security', name: 'Security', icon: 'shield', group: 'settings' },
  { path: '/developers', name: 'Developers', icon: 'code', group: 'settings' },
  { path: '/operator', name: 'Operator', icon: 'operator', group: 'settings', isOperator: true },
]

/** True if the path is the route's page or one below it. */
export function isAt(route: Route, path: string): boolean {
  return route.path === '/' ? path === '/' : path === route.path || path.startsWith(`${route.path}/`)
}
