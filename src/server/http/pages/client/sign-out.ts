import { ask } from './api.ts'
import { onSubmit } from './attempts.ts'
import { findForm } from './elements.ts'

/** Ends the session from any page of a signed-in person. */
export function setUpSignOut(): void {
  onSubmit(findForm('sign-out'), async () => {
    await ask('POST', '/api/auth/logout', {})
    location.assign('/sign-in')
  })
}
