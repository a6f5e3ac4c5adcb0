/** A recipient in dollars, as the API takes it. */
export const american = {
  currency: 'USD',
  name: 'Grace Hopper',
  country: 'US',
  account: { routingNumber: '021000021', accountNumber: '123456789' },
}
