import { mount } from 'svelte';
import App from './App.svelte';
import { preferences } from './data/preferences.svelte';
import { session } from './data/session.svelte';
import './design/base.css';
import { i18n, preferredLocale } from './i18n/i18n.svelte';
import { router } from './routing/router.svelte';

const target = document.getElementById('app');
if (!target) throw new Error('index.html has no #app');

router.start();
void session.refresh();
const languages = preferences.locale ? [preferences.locale] : navigator.languages;
// The first words that a person sees are in their language.
await i18n.use(preferredLocale(languages));
mount(App, { target });
